// Picks with replacement: draws are independent, so one thread fills one slot.
#pragma once

#include "cuda/pick/team.cuh"
#include "gnnbench/pick.h"

namespace gnnbench::cuda {

// Position that slot `s` of a row takes, by gnnbench/pick.h from the slot's draws.
template <class DrawFn>
__device__ __forceinline__ uint32_t independent_slot(const PickSpec& spec, const CscRow& row,
                                                     uint32_t s, DrawFn& draws) {
  const uint32_t each = spec.pick == Pick::kWithReplacement ? 1 : 2;
  uint32_t position = 0;
  const auto own = [&](uint32_t draw) { return draws(each * s + draw); };
  const WeightTables& t = spec.tables;
  if (spec.pick == Pick::kWithReplacement) {
    pick_with_replacement(row.degree, 1, own, &position);
  } else if (spec.pick == Pick::kWeightedAlias) {
    pick_weighted_alias(t.threshold + row.begin, t.alias + row.begin, row.degree, 1, own,
                        &position);
  } else {
    pick_weighted_prefix(t.prefix + row.begin, row.degree, 1, own, &position);
  }
  return position;
}

}  // namespace gnnbench::cuda
