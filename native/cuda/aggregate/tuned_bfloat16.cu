#include "cuda/aggregate/tuned.cuh"

namespace gnnbench::cuda {

template void row_sums<__nv_bfloat16>(Launch, const RowSums<__nv_bfloat16>&, int);

}  // namespace gnnbench::cuda
