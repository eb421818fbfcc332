// FastSample: fused sampling with a dense map that the caller keeps between batches.
#include "bindings/cpu/dense_map.h"
#include "bindings/cpu/fused_hops.h"

namespace gnnbench {
namespace {

template <class Id>
struct DenseMaps {
  DenseMap<Id> dense;

  const DenseMap<Id>& map() const { return dense; }
  void reserve(int64_t, const Id*, int64_t) const {}
};

template <class Id>
std::vector<Tensor> run(BatchTask& task, const Tensor& dense_map) {
  DenseMaps<Id> maps{{data<int32_t>(dense_map), owns_lines()}};
  return run_fused<Id>(task, maps);
}

std::vector<Tensor> fastsample_cpu(
    Tensor indptr, Tensor indices, Tensor seeds, std::vector<int64_t> fanouts, std::string pick,
    std::vector<Tensor> tables, std::vector<int64_t> walk, std::string frontier, int64_t key,
    int64_t batch, bool with_positions, Tensor dense_map,
    std::vector<int64_t> /*capacity: sizes are known here in time*/) {
  BatchTask task = batch_task(indptr, indices, seeds, fanouts, pick, tables, walk, frontier, key,
                              batch, with_positions);
  check_dense_map(dense_map, task);
  return with_team(task, [&] {
    return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task, dense_map)
                                                    : run<int64_t>(task, dense_map);
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("fastsample", TORCH_BOX(&fastsample_cpu)); }

}  // namespace gnnbench
