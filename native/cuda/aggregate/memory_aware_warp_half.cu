#include "cuda/aggregate/memory_aware_warp.cuh"

namespace gnnbench::cuda {

template void memory_aware_warp<__half>(Launch, const RowSums<__half>&, WarpShape);
template void memory_aware_warp_transposed<__half>(Launch, const RowSums<__half>&, WarpShape,
                                                   const WarpPieces<__half>&);

}  // namespace gnnbench::cuda
