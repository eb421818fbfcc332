#include "cuda/aggregate/spread_rows.cuh"

namespace gnnbench::cuda {

template void spread_row_sums<__nv_bfloat16>(Launch, const RowSums<__nv_bfloat16>&,
                                             const RowPieces<__nv_bfloat16>&);

}  // namespace gnnbench::cuda
