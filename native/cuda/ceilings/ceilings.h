// What a GPU can do at most, by kernels that do nothing else (cpu/ceilings/ceilings.h is the
// host's). `sum` is one number, 0 before; of words it is taken modulo 2^32. Words lie at a line's
// beginning.
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Lines of 64 bytes.
void ceiling_copy(Launch launch, const void* from, int64_t lines, void* to);

// Every pass reads all lines, past the first cache.
void ceiling_read(Launch launch, const uint32_t* words, int64_t lines, int64_t passes,
                  unsigned long long* sum);

// Rows ids[0..n) of `width` words; one outside the table fails a device assert.
void ceiling_rows(Launch launch, const uint32_t* words, int64_t rows, int64_t width,
                  const int64_t* ids, int64_t n, unsigned long long* sum);

// Multiply-adds that were done; `steps` at most 2^23.
void ceiling_fma(Launch launch, int64_t steps, unsigned long long* sum);

// Bytes of shared memory that were read.
void ceiling_shared(Launch launch, int64_t steps, unsigned long long* sum);

// A kernel that does nothing but to stand between others where kernels are listed.
void ceiling_mark(Launch launch);

}  // namespace gnnbench::cuda
