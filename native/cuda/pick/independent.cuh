// Picks with replacement: no draw depends on another, so a thread makes a slot alone.
#pragma once

#include "cuda/pick/team.cuh"
#include "gnnbench/pick.h"

namespace gnnbench::cuda {

// Position that slot `s` of a row takes: what gnnbench/pick.h makes of the draws that are the
// slot's. Where spec.pick is a constant one case of pick_row is left.
template <class DrawFn>
__device__ __forceinline__ uint32_t independent_slot(const PickSpec& spec, const CscRow& row,
                                                     uint32_t s, DrawFn& draws) {
  const uint32_t each = spec.pick == Pick::kWithReplacement ? 1 : 2;
  uint32_t position = 0;
  const auto own = [&](uint32_t draw) { return draws(each * s + draw); };
  pick_row(spec, row.begin, row.degree, 1, own, &position, &position);
  return position;
}

}  // namespace gnnbench::cuda
