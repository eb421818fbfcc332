#include "cuda/aggregate/memory_aware_warp.cuh"

namespace gnnbench::cuda {

template void memory_aware_warp<__nv_bfloat16>(Launch, const RowSums<__nv_bfloat16>&, WarpShape);
template void memory_aware_warp_transposed<__nv_bfloat16>(Launch, const RowSums<__nv_bfloat16>&,
                                                          WarpShape,
                                                          const WarpPieces<__nv_bfloat16>&);

}  // namespace gnnbench::cuda
