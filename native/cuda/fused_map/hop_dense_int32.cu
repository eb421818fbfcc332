#include "cuda/fused_map/hop.cuh"

namespace gnnbench::cuda {

template void launch_hop<DenseMap<int32_t>>(Launch, const FusedBatch<DenseMap<int32_t>::Id>&,
                                            const DenseMap<int32_t>&, const FusedHop&, uint32_t);

}  // namespace gnnbench::cuda
