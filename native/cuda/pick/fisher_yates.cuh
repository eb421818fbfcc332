// The Fisher-Yates pick by lanes; gnnbench/pick.h defines it. Move s writes what[s] to entry
// where[s]. The latest move of an entry counts.
#pragma once

#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {

// fanout <= width: in step t lane s receives the entry that slot t moved, and its new value.
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

// Any fanout, by a warp whose lanes search for the latest move together. `where` and `what` have
// fanout entries each.
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
