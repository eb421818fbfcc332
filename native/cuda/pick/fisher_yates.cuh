// The Fisher-Yates pick by lanes; see gnnbench/pick.h for the law. Move s is of entry where[s],
// into which what[s] goes; the latest move of an entry is the one that holds.
#pragma once

#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {

// fanout <= width: lane s learns in step t which entry slot t moved, and what into it.
template <class Slots>
__device__ __forceinline__ void fisher_yates_lanes(const Lanes& g, bool picks, uint32_t degree,
                                                   uint32_t fanout, const Draws& draws,
                                                   Slots slots) {
  const uint32_t last = degree - 1 - g.lane;
  uint32_t at = 0;
  if (picks && g.lane < fanout) at = bounded(draws(g.lane), degree - g.lane);
  uint32_t taken = at, filler = last;
  for (uint32_t t = 0; t + 1 < fanout; ++t) {
    const uint32_t where = __shfl_sync(kAllLanes, at, t, g.width);
    const uint32_t what = __shfl_sync(kAllLanes, filler, t, g.width);
    if (g.lane > t) {
      taken = where == at ? what : taken;
      filler = where == last ? what : filler;
    }
  }
  if (picks && g.lane < fanout) slots[g.lane] = taken;
}

// Any fanout, by a warp whose lanes look for the latest move together; `where` and `what` have room
// for fanout each.
template <class Slots>
__device__ __forceinline__ void fisher_yates_warp(uint32_t lane, uint32_t degree, uint32_t fanout,
                                                  const Draws& draws, Slots slots, Slots where,
                                                  Slots what) {
  CachedDraws drawn{draws};
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint32_t last = degree - 1 - s;
    const uint32_t at = bounded(drawn(s), degree - s);
    uint32_t move_of_at = 0, move_of_last = 0;  // number of the move, from 1
    for (uint32_t t = lane; t < s; t += 32) {
      const uint32_t entry = where[t];
      move_of_at = entry == at ? t + 1 : move_of_at;
      move_of_last = entry == last ? t + 1 : move_of_last;
    }
    move_of_at = __reduce_max_sync(kAllLanes, move_of_at);
    move_of_last = __reduce_max_sync(kAllLanes, move_of_last);
    if (lane == 0) {
      slots[s] = move_of_at ? what[move_of_at - 1] : at;
      what[s] = move_of_last ? what[move_of_last - 1] : last;
      where[s] = at;
    }
    __syncwarp();
  }
}

}  // namespace gnnbench::cuda
