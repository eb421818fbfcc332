#include "cuda/aggregate/tuned.cuh"

namespace gnnbench::cuda {

template void row_sums<__half>(Launch, const RowSums<__half>&, int);

}  // namespace gnnbench::cuda
