#include "cuda/aggregate/spread_rows.cuh"

namespace gnnbench::cuda {

template void spread_row_sums<float>(Launch, const RowSums<float>&, const RowPieces<float>&);

}  // namespace gnnbench::cuda
