// Floyd's pick by lanes; gnnbench/pick.h defines it.
#pragma once

#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {

// fanout <= width: lane s holds draw s and receives in step t the final value of slot t.
template <class Slots>
__device__ __forceinline__ void floyd_lanes(const Lanes& g, bool picks, uint32_t degree,
                                            uint32_t fanout, const Draws& draws, Slots slots) {
  const uint32_t last = degree - fanout + g.lane;
  uint32_t value = 0;
  if (picks && g.lane < fanout) value = bounded(draws(g.lane), last + 1);
  for (uint32_t t = 0; t + 1 < fanout; ++t) {
    const uint32_t settled = __shfl_sync(kAllLanes, value, t, g.width);
    if (g.lane > t && settled == value) value = last;  // later slots of the row are all below it
  }
  if (picks && g.lane < fanout) slots[g.lane] = value;
}

// Any fanout, by a warp whose lanes search for a repeated value together.
template <class Slots>
__device__ __forceinline__ void floyd_warp(uint32_t lane, uint32_t degree, uint32_t fanout,
                                           const Draws& draws, Slots slots) {
  CachedDraws drawn{draws};
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint32_t last = degree - fanout + s;
    uint32_t value = bounded(drawn(s), last + 1);
    bool repeated = false;
    for (uint32_t t = lane; t < s; t += 32) repeated |= slots[t] == value;
    if (__any_sync(kAllLanes, repeated)) value = last;
    if (lane == 0) slots[s] = value;
    __syncwarp();
  }
}

}  // namespace gnnbench::cuda
