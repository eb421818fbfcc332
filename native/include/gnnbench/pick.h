// Pick functions: which positions of a CSC row a destination draws. Sequential definitions; a
// parallel kernel must yield the same multiset of positions for the same draws.
//
// Both are without replacement and take every position, in stored order, where
// degree <= fanout. `out` has room for min(fanout, degree) positions.
#pragma once

#include <cstdint>

#include "gnnbench/rng.h"

namespace gnnbench {

enum class Pick : int { kReservoir = 0, kFloyd = 1 };

// Reservoir, algorithm R: item i replaces slot bounded(draw[i - fanout], i + 1) when that is a
// slot. The last writer of a slot is the largest i, which is what a parallel kernel needs.
template <class DrawFn, class T>
GNNBENCH_HD void pick_reservoir(uint32_t degree, uint32_t fanout, DrawFn draw, T* out) {
  for (uint32_t i = 0; i < fanout; ++i) out[i] = static_cast<T>(i);
  for (uint32_t i = fanout; i < degree; ++i) {
    const uint32_t slot = bounded(draw(i - fanout), i + 1);
    if (slot < fanout) out[slot] = static_cast<T>(i);
  }
}

// Floyd (Bentley & Floyd, CACM 30(9), 1987): fanout draws whatever the degree. Draw s is for
// j = degree - fanout + s; a repeated value is replaced by j itself.
template <class DrawFn, class T>
GNNBENCH_HD void pick_floyd(uint32_t degree, uint32_t fanout, DrawFn draw, T* out) {
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint32_t j = degree - fanout + s;
    const T value = static_cast<T>(bounded(draw(s), j + 1));
    bool repeated = false;  // no early exit: the branch would be mispredicted, the loop is not
    for (uint32_t t = 0; t < s; ++t) repeated |= out[t] == value;
    out[s] = repeated ? static_cast<T>(j) : value;
  }
}

}  // namespace gnnbench
