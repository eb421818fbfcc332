#include "cuda/aggregate/spread_rows.cuh"

namespace gnnbench::cuda {

template void spread_row_sums<__half>(Launch, const RowSums<__half>&, const RowPieces<__half>&);

}  // namespace gnnbench::cuda
