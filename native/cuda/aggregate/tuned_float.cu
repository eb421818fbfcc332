#include "cuda/aggregate/tuned.cuh"

namespace gnnbench::cuda {

template void row_sums<float>(Launch, const RowSums<float>&, int);

}  // namespace gnnbench::cuda
