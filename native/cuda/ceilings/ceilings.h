// Measured peaks of a GPU: kernels that do nothing else (cpu/ceilings/ceilings.h is for the host).
// `sum` is one number, initially 0. Sums of words are modulo 2^32. Words are line-aligned.
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Copies lines of 64 bytes.
void ceiling_copy(Launch launch, const void* from, int64_t lines, void* to);

// Every pass reads all lines, past L1.
void ceiling_read(Launch launch, const uint32_t* words, int64_t lines, int64_t passes,
                  unsigned long long* sum);

// Sums the rows ids[0..n) of `width` words. An id outside the table fails a device assert.
void ceiling_rows(Launch launch, const uint32_t* words, int64_t rows, int64_t width,
                  const int64_t* ids, int64_t n, unsigned long long* sum);

// `sum` becomes the number of multiply-adds done. `steps` is at most 2^23.
void ceiling_fma(Launch launch, int64_t steps, unsigned long long* sum);

// `sum` becomes the bytes of shared memory read.
void ceiling_shared(Launch launch, int64_t steps, unsigned long long* sum);

// An empty kernel that marks a position in a list of kernels.
void ceiling_mark(Launch launch);

}  // namespace gnnbench::cuda
