#include "cuda/fused_map/hop.cuh"

namespace gnnbench::cuda {

template void launch_hop<VersionedEntries>(Launch, const FusedBatch<VersionedEntries::Id>&,
                                           const VersionedEntries&, const FusedHop&, uint32_t);

}  // namespace gnnbench::cuda
