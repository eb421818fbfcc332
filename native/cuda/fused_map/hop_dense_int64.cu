#include "cuda/fused_map/hop.cuh"

namespace gnnbench::cuda {

template void launch_hop<DenseMap<int64_t>>(Launch, const FusedBatch<DenseMap<int64_t>::Id>&,
                                            const DenseMap<int64_t>&, const FusedHop&, uint32_t);

}  // namespace gnnbench::cuda
