// The reservoir picks by any team, as in DGL's kernel: a slot keeps the largest position offered to
// it (atomicMax), which is the last writer of the sequential loop of gnnbench/pick.h.
//
// A row's offers come in units that lanes process in any order: Philox blocks of four draws, then,
// for a thinned reservoir, its cells (gnnbench/thinning.h).
#pragma once

#include "cuda/pick/team.cuh"
#include "gnnbench/pick.h"

namespace gnnbench::cuda {

// Call it before the first offer and synchronise the team (or the device) between the two.
template <class Team, class Slots>
__device__ __forceinline__ void fill_slots(const Team& team, uint32_t fanout, Slots slots) {
  for (uint32_t s = team.rank(); s < fanout; s += team.size()) slots[s] = s;
}

// Offers the draws of Philox block `block` below `end`. Draw d is for position fanout + d.
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

// Whether fill_slots and offers fill a pick's slots.
__host__ __device__ constexpr bool takes_offers(Pick pick) {
  return pick == Pick::kReservoir || pick == Pick::kReservoirThinned;
}

// Number of positions of a row that are not in cells.
__device__ __forceinline__ uint32_t drawn_singly(Pick pick, uint32_t degree, uint32_t fanout) {
  return pick == Pick::kReservoirThinned ? min(degree, thinned_from(fanout)) : degree;
}

// Number of offer units of a row that is not taken whole.
__device__ __forceinline__ uint32_t offer_units(Pick pick, uint32_t degree, uint32_t fanout) {
  const uint32_t cells = pick == Pick::kReservoirThinned ? thinned_cells(degree, fanout) : 0;
  return (drawn_singly(pick, degree, fanout) - fanout + 3) / 4 + cells;
}

template <class Slots>
__device__ __forceinline__ void offer_unit(Pick pick, const Draws& draws, uint32_t unit,
                                           uint32_t degree, uint32_t fanout, Slots slots) {
  const uint32_t singly = drawn_singly(pick, degree, fanout) - fanout, blocks = (singly + 3) / 4;
  if (unit < blocks) {
    offer_block(draws, unit, singly, fanout, slots);
  } else if (pick == Pick::kReservoirThinned) {
    CachedDraws drawn{draws};
    thinned_cell(unit - blocks, degree, fanout, drawn,
                 [&](uint32_t item, uint32_t slot) { atomicMax(&slots[slot], item); });
  }
}

// Makes all offers of a row.
template <class Team, class Slots>
__device__ __forceinline__ void offer_row(Pick pick, const Team& team, const Draws& draws,
                                          uint32_t degree, uint32_t fanout, Slots slots) {
  const uint32_t units = offer_units(pick, degree, fanout);
  for (uint32_t u = team.rank(); u < units; u += team.size()) {
    offer_unit(pick, draws, u, degree, fanout, slots);
  }
}

// Offers the draws from `first`, a multiple of four, to `end` of a reservoir.
template <class Team, class Slots>
__device__ __forceinline__ void offer_draws(const Team& team, const Draws& draws, uint32_t first,
                                            uint32_t end, uint32_t fanout, Slots slots) {
  const uint32_t blocks = (end + 3) / 4;
  for (uint32_t b = first / 4 + team.rank(); b < blocks; b += team.size()) {
    offer_block(draws, b, end, fanout, slots);
  }
}

}  // namespace gnnbench::cuda
