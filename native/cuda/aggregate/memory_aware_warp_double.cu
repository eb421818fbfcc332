#include "cuda/aggregate/memory_aware_warp.cuh"

namespace gnnbench::cuda {

template void memory_aware_warp<double>(Launch, const RowSums<double>&, WarpShape);
template void memory_aware_warp_transposed<double>(Launch, const RowSums<double>&, WarpShape,
                                                   const WarpPieces<double>&);

}  // namespace gnnbench::cuda
