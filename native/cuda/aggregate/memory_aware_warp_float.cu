#include "cuda/aggregate/memory_aware_warp.cuh"

namespace gnnbench::cuda {

template void memory_aware_warp<float>(Launch, const RowSums<float>&, WarpShape);
template void memory_aware_warp_transposed<float>(Launch, const RowSums<float>&, WarpShape,
                                                  const WarpPieces<float>&);

}  // namespace gnnbench::cuda
