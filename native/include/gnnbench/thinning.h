// The thinned reservoir: algorithm R's distribution from a number of draws that grows with the
// logarithm of the degree. It applies thinning (Lewis & Shedler, "Simulation of Nonhomogeneous
// Poisson Processes by Thinning", 1979) to coins.
//
// Algorithm R offers item i to each slot with probability 1 / (i + 1), independently of the other
// items, and a slot keeps its last offer. In a long row nearly every draw makes no offer. Items
// from 8 H on, H = ceil(fanout / 2), are in cells:
//
//   octave j = 3, 4, ..  items [2^j H, 2^(j+1) H)  in H cells of 2^j
//
// An item of octave j is a candidate with probability 2^(1-j), which is at least fanout / (i + 1).
// The number of candidates in a cell is binomial: one draw and a table. Which items they are:
// Floyd's sample, one draw each. The rest of that draw, u, offers candidate i to slot
// bounded(u, i + 1) >> (j - 1) if that slot exists: 2^(1-j) * 2^(j-1) / (i + 1) for each slot.
// Words of 32 bits leave a bias of at most 2 degree / 2^32 of a probability. More than 16
// candidates occur once in 10^10 cells and count as 16.
//
// Cells are independent: any lane can process any cell. A cell has two candidates on average, so
// that one Philox block (a count, three candidates) serves 86 % of the cells. Philox blocks of a
// row with fanout 10: reservoir (degree - 10) / 4, thinned 8 + 5 log2(degree / 40) * 1.14. That is
// 248 and 35 for 1,000 entries, 24,998 and 73 for 100,000. An R-MAT batch (scale 18, 2048 seeds,
// 10/10/10, 45 k rows) takes 5.1 M and 0.8 M blocks, compared with 0.4 M reads of neighbours.
#pragma once

#include <cstdint>

#include "gnnbench/rng.h"

namespace gnnbench {

constexpr uint32_t kFirstOctave = 3;
constexpr uint32_t kOctaves = 32 - kFirstOctave;
constexpr uint32_t kMostCandidates = 16;

// Draws reserved for a cell, in whole Philox blocks: its count, then one per candidate.
constexpr uint32_t kCellDraws = 20;
static_assert(kCellDraws >= 1 + kMostCandidates && kCellDraws % 4 == 0);

// Above this fanout the draw numbers of the cells would exceed 32 bits.
constexpr uint32_t kMostThinnedFanout = 1u << 24;

// Binomial(2^j, 2^(1-j)) of each octave: a word above at_most[j - 3][c] means more than c
// candidates.
struct CandidateCounts {
  uint32_t at_most[kOctaves][kMostCandidates];
};

constexpr CandidateCounts candidate_counts() {
  CandidateCounts out{};
  double p = 0.25, items = 8;
  for (uint32_t octave = 0; octave < kOctaves; ++octave, p /= 2, items *= 2) {
    // P(none) = (1 - p)^(2 / p) = exp(-x), x = 2 (1 + p / 2 + p^2 / 3 + ..). All terms are
    // positive, so the error is a few units in the last place.
    double x = 0, power = 1;
    for (int k = 1; k < 30; ++k, power *= p) x += 2 * power / k;
    double exponential = 0, term = 1;
    for (int k = 1; k < 60; ++k) {
      exponential += term;
      term *= x / k;
    }
    double exactly = 1 / exponential, most = 0;
    for (uint32_t c = 0; c < kMostCandidates; ++c) {
      most += exactly;
      const double words = most * 4294967296.0 - 0.5;  // rounded, minus one
      out.at_most[octave][c] = words < 4294967295.0 ? static_cast<uint32_t>(words) : 0xFFFFFFFFu;
      exactly *= (items - c) / (c + 1) * (p / (1 - p));
    }
  }
  return out;
}

GNNBENCH_HD uint32_t candidate_count(uint32_t octave, uint32_t word) {
  static constexpr CandidateCounts kCounts = candidate_counts();
  const uint32_t* const at_most = kCounts.at_most[octave - kFirstOctave];
  uint32_t count = 0;
  while (count < kMostCandidates && word > at_most[count]) ++count;
  return count;
}

GNNBENCH_HD uint32_t log2_floor(uint32_t n) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(static_cast<int>(n));
#else
  return 31 - static_cast<uint32_t>(__builtin_clz(n));
#endif
}

// The first item in a cell. Earlier items are drawn as in algorithm R: draw i - fanout for item i.
GNNBENCH_HD uint32_t thinned_from(uint32_t fanout) {
  return fanout <= kMostThinnedFanout ? (fanout + 1) / 2 << kFirstOctave : 0xFFFFFFFFu;
}

GNNBENCH_HD uint32_t thinned_cells(uint32_t degree, uint32_t fanout) {
  if (degree <= thinned_from(fanout)) return 0;
  const uint32_t half = (fanout + 1) / 2, last = degree - 1, octave = log2_floor(last / half);
  return (octave - kFirstOctave) * half + (last >> octave) - half + 1;
}

// The first of a cell's kCellDraws draws.
GNNBENCH_HD uint32_t cell_draws(uint32_t cell, uint32_t fanout) {
  return thinned_from(fanout) + kCellDraws * cell;
}

// Calls offer(item, slot) for each offer of a cell, in any order. The draws are the row's.
template <class DrawFn, class Offer>
GNNBENCH_HD void thinned_cell(uint32_t cell, uint32_t degree, uint32_t fanout, DrawFn& draw,
                              const Offer& offer) {
  const uint32_t half = (fanout + 1) / 2, octave = kFirstOctave + cell / half;
  const uint32_t first = (half + cell % half) << octave, draws = cell_draws(cell, fanout);
  const uint32_t count = candidate_count(octave, draw(draws));
  uint32_t places[kMostCandidates];
  for (uint32_t t = 0; t < count; ++t) {
    const uint32_t last = (1u << octave) - count + t;
    const uint64_t product = static_cast<uint64_t>(draw(draws + 1 + t)) * (last + 1);
    uint32_t place = static_cast<uint32_t>(product >> 32);
    for (uint32_t before = 0; before < t; ++before) {
      if (places[before] == place) place = last;  // no earlier place is the last
    }
    places[t] = place;
    if (place >= degree - first) continue;  // the last cell extends beyond the row
    const uint32_t item = first + place;
    const uint32_t slot = bounded(static_cast<uint32_t>(product), item + 1) >> (octave - 1);
    if (slot < fanout) offer(item, slot);
  }
}

}  // namespace gnnbench
