// Dropout whose mask is a function of the counter-based generator; cpu/layers/dropout.h says which.
//
// Lower bound, n = rows * dim elements of b bytes: n b bytes are read and as many written, and an
// id for each row; the backward is the same. One kernel does just that: a thread draws one block of
// random numbers for four columns, some 25 integer instructions an element.
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// out [rows, dim] from x [rows, dim]; nodes [rows] are global ids below 2^48. Where `place` is not
// null, the kernel reads key and batch there, because a CUDA graph replays its arguments.
template <class Real, class Id>
void dropout(Launch launch, const Real* x, const Id* nodes, int64_t rows, int64_t dim, uint64_t key,
             uint32_t batch, const int64_t* place, uint32_t layer, uint32_t threshold, Real scale,
             Real* out);

}  // namespace gnnbench::cuda
