#include "cuda/fused_map/hop.cuh"

namespace gnnbench::cuda {

template void launch_hop<WideTable>(Launch, const FusedBatch<WideTable::Id>&, const WideTable&,
                                    const FusedHop&, uint32_t);

}  // namespace gnnbench::cuda
