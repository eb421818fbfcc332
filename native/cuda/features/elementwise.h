// Gather of rows as PyTorch-Direct prints it (Listing 2), to measure next to gather.h.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

constexpr int64_t kElementBytes = 4;  // of one thread's load

// out row i = table row ids[i], one element of 4 bytes per thread, lanes along the whole output.
// row_bytes and both addresses must be multiples of 4. shifted: with the circular shift
// (elementwise.cuh). An id out of range fails a device assert.
template <class Id>
void gather_elementwise(Launch launch, const void* table, int64_t num_rows, const Id* ids,
                        int64_t n, int64_t row_bytes, void* out, bool shifted);

}  // namespace gnnbench::cuda
