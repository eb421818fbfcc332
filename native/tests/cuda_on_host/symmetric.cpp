// The launcher of native/cuda/aggregate/symmetric.cu under a name that Python can call.
#include "cuda/aggregate/symmetric.h"

#include "tests/cuda_on_host/device.h"

extern "C" void symmetric_weights_of(const int32_t* indptr, const int32_t* indices,
                                     int64_t num_edges, int64_t num_src, int64_t num_dst,
                                     int32_t* counts, float* out) {
  gnnbench::cuda::symmetric_weights({nullptr, "test"}, indptr, indices, num_edges, num_src, num_dst,
                                    counts, out);
}
