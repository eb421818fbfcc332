// FastSample: fused sampling with a dense map that the caller keeps between batches.
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
  check_cpu(dense_map, "dense_map");
  check_layout(dense_map, "dense_map", 1);
  check_dtype(dense_map, "dense_map", ScalarType::Int);
  if (dense_map.numel() != indptr.numel() - 1) {
    fail("dense_map must have one entry per node, ", indptr.numel() - 1, ", it has ",
         dense_map.numel());
  }
  check_apart(dense_map, "dense_map", indptr, "indptr");
  check_apart(dense_map, "dense_map", indices, "indices");
  check_apart(dense_map, "dense_map", seeds, "seeds");
  return with_team(task, [&] {
    return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task, dense_map)
                                                    : run<int64_t>(task, dense_map);
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("fastsample", TORCH_BOX(&fastsample_cpu)); }

}  // namespace gnnbench
