#include "cuda/aggregate/tuned.cuh"

namespace gnnbench::cuda {

template void row_sums<double>(Launch, const RowSums<double>&, int);

}  // namespace gnnbench::cuda
