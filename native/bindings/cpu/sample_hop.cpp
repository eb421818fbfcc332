#include <tuple>

#include "bindings/cpu/hop.h"

namespace gnnbench {
namespace {

using Answer = std::tuple<Tensor, Tensor, Tensor, Tensor>;

template <class Id>
Answer run(const Tensor& indptr, const Tensor& indices, const Tensor& dst, const HopDraws& draws) {
  HopEdges e = sample_one_hop(csc_of<Id>(indptr, indices), data<const Id>(dst), dst.numel(), draws,
                              true, "dst");
  return {e.indptr, e.neighbors, e.positions, e.weights};
}

Answer sample_hop_cpu(Tensor indptr, Tensor indices, Tensor dst, int64_t fanout, std::string pick,
                      std::vector<Tensor> tables, std::vector<int64_t> walk, int64_t key,
                      int64_t hop, int64_t batch) {
  check_csc(indptr, indices);
  check_layout(dst, "dst", 1);
  check_dtype(dst, "dst", indices.scalar_type());
  check_cpu(indptr, "indptr");
  check_cpu(indices, "indices");
  check_cpu(dst, "dst");
  const PickSpec spec = pick_spec(pick, tables, walk, indices.numel(), cpu_pointer);
  const HopDraws draws{spec, fanout_of(fanout, spec.pick), static_cast<uint64_t>(key),
                       check_u32(hop, "hop", int64_t{1} << 16),
                       check_u32(batch, "batch", int64_t{1} << 32)};
  return indices.scalar_type() == ScalarType::Int ? run<int32_t>(indptr, indices, dst, draws)
                                                  : run<int64_t>(indptr, indices, dst, draws);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("sample_hop", TORCH_BOX(&sample_hop_cpu)); }

}  // namespace gnnbench
