#include "cuda/aggregate/spread_rows.cuh"

namespace gnnbench::cuda {

template void spread_row_sums<double>(Launch, const RowSums<double>&, const RowPieces<double>&);

}  // namespace gnnbench::cuda
