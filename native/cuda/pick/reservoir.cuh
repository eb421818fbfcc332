// The reservoir pick by any team, as DGL's kernel: a slot keeps the largest position that drew it
// (atomicMax), which is the last writer of the sequential loop of gnnbench/pick.h.
#pragma once

#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {

// Before the first offer, which must see it: the team (or the device) is to be synchronised.
template <class Team, class Slots>
__device__ __forceinline__ void fill_slots(const Team& team, uint32_t fanout, Slots slots) {
  for (uint32_t s = team.rank(); s < fanout; s += team.size()) slots[s] = s;
}

// The draws of Philox block `block` below `end`. Draw d is for position fanout + d.
template <class Slots>
__device__ __forceinline__ void offer_block(const Draws& draws, uint32_t block, uint32_t end,
                                            uint32_t fanout, Slots slots) {
  const Philox4 words = draws.block(block);
  const uint32_t word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t draw = 4 * block + k;
    if (draw >= end) continue;
    const uint32_t slot = bounded(word[k], fanout + draw + 1);
    if (slot < fanout) atomicMax(&slots[slot], fanout + draw);
  }
}

// The draws from `first`, a multiple of four, to `end`; all of a row: 0 to degree - fanout.
template <class Team, class Slots>
__device__ __forceinline__ void offer_draws(const Team& team, const Draws& draws, uint32_t first,
                                            uint32_t end, uint32_t fanout, Slots slots) {
  const uint32_t blocks = (end + 3) / 4;
  for (uint32_t b = first / 4 + team.rank(); b < blocks; b += team.size()) {
    offer_block(draws, b, end, fanout, slots);
  }
}

}  // namespace gnnbench::cuda
