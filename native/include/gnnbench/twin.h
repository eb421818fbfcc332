// Synthetic twins: generator functions shared by host and device. Integers only.
//
// A node has a *position*. Communities, and regions of communities, are contiguous ranges of
// positions. Three keyed bijections of [0, n) map a position to its id, its in-rank and its
// out-rank, so that an id reveals neither community nor degree. A weight distribution maps a rank
// to a weight: a table over octaves of the rank fraction, linear in between.
//
// The edges of a row belong to three levels: inside its community, inside its region but outside
// its community, and outside its region. A directed row draws sources by out-weight from a whole
// level. A symmetric row draws, by weight, only partners at earlier positions and is mirrored
// afterwards. So P(u, v) is proportional to weight(u) * weight(v) (Chung & Lu, PNAS 99(25), 2002),
// and duplicates can arise only inside one row of one level.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"
#include "gnnbench/rng.h"

namespace gnnbench::twin {

constexpr int kLevels = 3;
constexpr int kLawPoints = 34;
// Word c3 of every counter of a twin, and the streams, which take the place of the hop.
constexpr uint32_t kTag = 0x7457494Eu;
constexpr uint32_t kStreamIds = 0, kStreamInRank = 1, kStreamOutRank = 2, kStreamTied = 3;
constexpr uint32_t kStreamEdges = 8;  // + level
constexpr uint32_t kStreamLabels = 16, kStreamSplits = 17, kStreamFeatures = 18,
                   kStreamCentres = 19;

GNNBENCH_HD uint64_t mul_hi64(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

// floor(a * b / c) for a result below 2^64.
GNNBENCH_HD uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b / c);
}

GNNBENCH_HD Draws draws(uint64_t key, uint32_t stream, uint64_t vertex) {
  return Draws{key, vertex, stream, kTag};
}

// 64-bit draw i of a stream: words 2i (low half) and 2i + 1.
GNNBENCH_HD uint64_t draw64(const Draws& d, uint32_t i) {
  const Philox4 b = d.block(i >> 1);
  return (i & 1u) ? (static_cast<uint64_t>(b.w) << 32 | b.z)
                  : (static_cast<uint64_t>(b.y) << 32 | b.x);
}

// Keyed bijection of [0, n), n < 2^31: a Feistel network of six rounds over halves of unequal
// width. It is repeated until the value is in range (at most twice on average).
struct Bijection {
  uint32_t n, low_bits, low_mask, high_mask, round_keys[6];

  GNNBENCH_HD Bijection(uint64_t key, uint32_t stream, uint32_t n) : n(n) {
    uint32_t bits = 2;
    while ((uint64_t{1} << bits) < n) ++bits;
    low_bits = bits / 2;
    low_mask = (1u << low_bits) - 1u;
    high_mask = (1u << (bits - low_bits)) - 1u;
    for (uint32_t i = 0; i < 6; ++i) round_keys[i] = draws(key, stream, 0)(i);
  }

  static GNNBENCH_HD uint32_t mix(uint32_t x, uint32_t round_key) {
    x = x * 0x9E3779B1u + round_key;
    x = (x ^ (x >> 15)) * 0x85EBCA77u;
    x = (x ^ (x >> 13)) * 0xC2B2AE3Du;
    return x ^ (x >> 16);
  }

  GNNBENCH_HD uint32_t operator()(uint32_t x) const {
    do {
      uint32_t low = x & low_mask, high = x >> low_bits;
      for (int i = 0; i < 6; i += 2) {
        low ^= mix(high, round_keys[i]) & low_mask;
        high ^= mix(low, round_keys[i + 1]) & high_mask;
      }
      x = high << low_bits | low;
    } while (x >= n);
    return x;
  }

  GNNBENCH_HD uint32_t inverse(uint32_t x) const {
    do {
      uint32_t low = x & low_mask, high = x >> low_bits;
      for (int i = 5; i > 0; i -= 2) {
        high ^= mix(low, round_keys[i]) & high_mask;
        low ^= mix(high, round_keys[i - 1]) & low_mask;
      }
      x = high << low_bits | low;
    } while (x >= n);
    return x;
  }
};

// points[j] is the weight at rank fraction 2^-j (non-decreasing, at most 2^30). Ranks from
// `positive` on have weight 0.
struct Law {
  const int64_t* points;
  uint32_t positive;

  GNNBENCH_HD uint64_t weight(uint32_t rank) const {
    if (rank >= positive) return 0;
    const uint64_t x = 2 * uint64_t{rank} + 1, whole = 2 * uint64_t{positive};
    int j = 0;
    while ((x << (j + 1)) <= whole) ++j;
    const uint64_t rise = static_cast<uint64_t>(points[j + 1] - points[j]);
    return static_cast<uint64_t>(points[j]) + rise * (whole - (x << j)) / positive;
  }
};

// Parameters of the two weights of a position. `tied` (0 to 65536) is the share of positions whose
// out-rank equals their in-rank; 65536 for symmetric graphs.
struct Weights {
  uint64_t key;
  Bijection in_rank, out_rank;
  Law in_law, out_law;
  uint32_t tied;

  GNNBENCH_HD uint64_t in(uint32_t position) const { return in_law.weight(in_rank(position)); }

  GNNBENCH_HD uint64_t out(uint32_t position) const {
    const bool same = tied >= 65536u || (draws(key, kStreamTied, position)(0) >> 16) < tied;
    return out_law.weight(same ? in_rank(position) : out_rank(position));
  }
};

// The effective weight at one kind of level. Inside a community of `size` it is capped at limit *
// size / 65536, so that no node requests more neighbours than there are. Elsewhere boost / 65536 of
// the amount above the cap is added.
GNNBENCH_HD uint64_t level_weight(uint64_t weight, bool inside, uint64_t size, uint64_t limit,
                                  uint64_t boost) {
  const uint64_t most = (limit * size) >> 16;
  if (inside) return weight < most ? weight : most;
  return weight <= most ? weight : weight + (((weight - most) * boost) >> 16);
}

// The positions that a row can draw from at one level: [lo, hi) without [hole_lo, hole_hi).
struct Range {
  uint32_t lo, hole_lo, hole_hi, hi;

  GNNBENCH_HD uint32_t count() const { return (hole_lo - lo) + (hi - hole_hi); }

  GNNBENCH_HD uint64_t weight(const uint64_t* prefix) const {
    return (prefix[hole_lo] - prefix[lo]) + (prefix[hi] - prefix[hole_hi]);
  }

  // The candidate number i of count().
  GNNBENCH_HD uint32_t at(uint32_t i) const {
    return i < hole_lo - lo ? lo + i : hole_hi + (i - (hole_lo - lo));
  }

  // Maps a 64-bit draw to a point of the prefix sums.
  GNNBENCH_HD uint64_t point(const uint64_t* prefix, uint64_t total, uint64_t draw) const {
    const uint64_t y = prefix[lo] + mul_hi64(draw, total);
    return y < prefix[hole_lo] ? y : y + (prefix[hole_hi] - prefix[hole_lo]);
  }
};

// `bounds` are the nested ranges around the row: itself, its community, its region, all positions.
GNNBENCH_HD Range level_range(const uint32_t (*bounds)[2], int level, bool symmetric) {
  const uint32_t* hole = bounds[level];
  const uint32_t* outer = bounds[level + 1];
  return Range{outer[0], hole[0], hole[1], symmetric ? hole[1] : outer[1]};
}

// After this many draws the rest of a row's level is filled by position, from a drawn start.
GNNBENCH_HD uint32_t draw_limit(uint32_t wanted) { return 4 * wanted + 64; }

// Splits are filled in order of this score, smallest first; ties go to the smaller id. Factors, in
// 1/65536, move home communities (locality) and high degrees (degree_bias) forward.
GNNBENCH_HD uint64_t split_score(uint64_t key, uint32_t position, uint32_t id, bool home,
                                 uint32_t rank_share, uint32_t locality, uint32_t degree_bias) {
  const uint64_t place = home ? 65536u - locality : 65536u;
  const uint64_t degree = 65536u - ((uint64_t{degree_bias} * (65536u - rank_share)) >> 16);
  uint64_t score = draws(key, kStreamSplits, position)(0);
  score = ((score * place) >> 16) * degree >> 16;
  return score << 32 | id;
}

GNNBENCH_HD uint32_t node_label(uint64_t key, uint32_t position, uint32_t label, uint32_t classes,
                                uint32_t noise) {
  const Philox4 r = draws(key, kStreamLabels, position).block(0);
  return (r.x >> 16) < noise ? bounded(r.y, classes) : label;
}

}  // namespace gnnbench::twin
