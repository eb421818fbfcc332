// Weights of a block's edges by the degrees of both ends, bit by bit those of the CPU
// (cpu/aggregate/symmetric.h, which has the lower bound).
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// out [num_edges]; counts [num_src] is scratch. Invalid offsets and ids fail a device assert.
void symmetric_weights(Launch launch, const int32_t* indptr, const int32_t* indices,
                       int64_t num_edges, int64_t num_src, int64_t num_dst, int32_t* counts,
                       float* out);

}  // namespace gnnbench::cuda
