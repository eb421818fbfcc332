#include "cuda/fused_map/hop.cuh"

namespace gnnbench::cuda {

template void launch_hop<PackedTable>(Launch, const FusedBatch<PackedTable::Id>&,
                                      const PackedTable&, const FusedHop&, uint32_t);

}  // namespace gnnbench::cuda
