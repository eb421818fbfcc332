// Dropout whose mask is a function of the counter-based generator: equal for every device, order of
// rows, schedule and number of ranks.
//
// Column i of a row is kept where draw i of (its vertex, layer as the hop, batch) is at least
// `threshold`, and multiplied by `scale`; otherwise it is 0. The mask is not stored: the gradient
// is the same function of the result's gradient.
#pragma once

#include <cstdint>

namespace gnnbench {

// out [rows, dim] from x [rows, dim]; nodes [rows] are global ids below 2^48.
template <class Real, class Id>
void dropout(const Real* x, const Id* nodes, int64_t rows, int64_t dim, uint64_t key,
             uint32_t batch, uint32_t layer, uint32_t threshold, Real scale, Real* out);

}  // namespace gnnbench
