// Sampling methods ("picks"): which entries of a CSC row a destination draws. These are the
// sequential definitions. A parallel kernel must yield the same multiset for the same draws.
//
//   pick             draws of a row         edges of a row                       replacement
//   reservoir        degree - fanout        min(fanout, degree)                  without
//   floyd            fanout                 min(fanout, degree)                  without
//   fisher_yates     fanout                 min(fanout, degree)                  without
//   with_replacement fanout                 fanout, 0 in an empty row            with
//   weighted_alias   2 fanout               fanout, 0 in a row without weight    with
//   weighted_prefix  2 fanout               fanout, 0 in a row without weight    with
//   random_walk      2 walks length         min(fanout, nodes visited)           (nodes, not edges)
//   reservoir_thinned  see thinning.h       min(fanout, degree)                  without
//
// Where degree <= fanout, methods without replacement take every position, in stored order and
// without a draw; their functions are called for longer rows only. Methods with replacement are
// called for rows with a positive count only. Positions are relative to the row's begin.
#pragma once

#include <cstdint>

#include "gnnbench/csc.h"
#include "gnnbench/rng.h"
#include "gnnbench/thinning.h"

namespace gnnbench {

enum class Pick : int {
  kReservoir = 0,
  kFloyd = 1,
  kFisherYates = 2,
  kWithReplacement = 3,
  kWeightedAlias = 4,
  kWeightedPrefix = 5,
  kRandomWalk = 6,
  kReservoirThinned = 7,
};

// Integer tables of the weighted picks, one entry per CSC entry, built once on the host. The
// pointers that a pick does not use are null.
struct WeightTables {
  const uint32_t* threshold;  // alias: entry s keeps a draw whose coin is below threshold[s]
  const uint32_t* alias;  // alias: else this position of the row; kNoWeight if all weights are 0
  const int64_t* prefix;  // prefix: inclusive sums of the row's integer weights
};

constexpr uint32_t kNoWeight = 0xFFFFFFFFu;

// The fanout that takes every row whole (-1 in Python). No degree exceeds it, so nothing is drawn
// and no slot is needed. For picks without replacement only.
constexpr uint32_t kAllNeighbors = 0xFFFFFFFFu;

// PinSAGE's random walks, which all start at the destination.
struct Walk {
  uint32_t walks;
  uint32_t length;   // steps of a walk
  uint32_t restart;  // probability * 2^32 of returning to the destination before a step

  GNNBENCH_HD uint32_t visits() const { return walks * length; }
};

constexpr uint32_t kMaxVisits = 4096;

// All parameters of a pick except the row and its draws.
struct PickSpec {
  Pick pick;
  WeightTables tables;
  Walk walk;
};

// What all rows of one hop of a batch share.
struct HopDraws {
  PickSpec spec;
  uint32_t fanout;
  uint64_t key;
  uint32_t hop;
  uint32_t batch;

  GNNBENCH_HD Draws of(int64_t vertex) const {
    return Draws{key, static_cast<uint64_t>(vertex), hop, batch};
  }
};

GNNBENCH_HD bool without_replacement(Pick pick) {
  return pick == Pick::kReservoir || pick == Pick::kReservoirThinned || pick == Pick::kFloyd ||
         pick == Pick::kFisherYates;
}

// Number of edges that a row of `degree` entries, which begins at `begin` in the CSC, yields. For
// random_walk an upper bound.
GNNBENCH_HD uint32_t pick_count(const PickSpec& spec, int64_t begin, uint32_t degree,
                                uint32_t fanout) {
  if (degree == 0) return 0;
  switch (spec.pick) {
    case Pick::kReservoir:
    case Pick::kReservoirThinned:
    case Pick::kFloyd:
    case Pick::kFisherYates: return degree < fanout ? degree : fanout;
    case Pick::kWithReplacement: return fanout;
    case Pick::kWeightedAlias: return spec.tables.alias[begin] == kNoWeight ? 0 : fanout;
    case Pick::kWeightedPrefix: return spec.tables.prefix[begin + degree - 1] == 0 ? 0 : fanout;
    default: return spec.walk.visits() < fanout ? spec.walk.visits() : fanout;
  }
}

// Whether a row is taken whole: every position, in stored order, without a draw.
GNNBENCH_HD bool takes_all(Pick pick, uint32_t degree, uint32_t fanout) {
  return without_replacement(pick) && degree <= fanout;
}

// Number of draws of a row with a positive count. For reservoir_thinned an upper bound.
GNNBENCH_HD uint32_t pick_draws(const PickSpec& spec, uint32_t degree, uint32_t fanout) {
  if (takes_all(spec.pick, degree, fanout)) return 0;
  switch (spec.pick) {
    case Pick::kReservoir: return degree - fanout;
    case Pick::kReservoirThinned: {
      const uint32_t cells = thinned_cells(degree, fanout);
      return cells == 0 ? degree - fanout : cell_draws(cells, fanout);
    }
    case Pick::kFloyd:
    case Pick::kFisherYates:
    case Pick::kWithReplacement: return fanout;
    case Pick::kWeightedAlias:
    case Pick::kWeightedPrefix: return 2 * fanout;
    default: return 2 * spec.walk.visits();
  }
}

// Reservoir, algorithm R: item i replaces slot bounded(draw[i - fanout], i + 1) if that is a slot.
// The largest i that replaces a slot wins, which a parallel kernel can compute.
template <class DrawFn, class T>
GNNBENCH_HD void pick_reservoir(uint32_t degree, uint32_t fanout, DrawFn draw, T* out) {
  for (uint32_t i = 0; i < fanout; ++i) out[i] = static_cast<T>(i);
  for (uint32_t i = fanout; i < degree; ++i) {
    const uint32_t slot = bounded(draw(i - fanout), i + 1);
    if (slot < fanout) out[slot] = static_cast<T>(i);
  }
}

// The same distribution from fewer draws, see thinning.h.
template <class DrawFn, class T>
GNNBENCH_HD void pick_reservoir_thinned(uint32_t degree, uint32_t fanout, DrawFn draw, T* out) {
  const uint32_t from = thinned_from(fanout), cells = thinned_cells(degree, fanout);
  pick_reservoir(degree < from ? degree : from, fanout, draw, out);
  const auto offer = [&](uint32_t item, uint32_t slot) {
    if (static_cast<T>(item) > out[slot]) out[slot] = static_cast<T>(item);
  };
  for (uint32_t cell = 0; cell < cells; ++cell) thinned_cell(cell, degree, fanout, draw, offer);
}

// Floyd (Bentley & Floyd, CACM 30(9), 1987): fanout draws for any degree. Draw s selects from [0,
// j] with j = degree - fanout + s; a repeated value is replaced by j itself.
template <class DrawFn, class T>
GNNBENCH_HD void pick_floyd(uint32_t degree, uint32_t fanout, DrawFn draw, T* out) {
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint32_t j = degree - fanout + s;
    const T value = static_cast<T>(bounded(draw(s), j + 1));
    bool repeated = false;  // no early exit: its branch would be mispredicted
    for (uint32_t t = 0; t < s; ++t) repeated |= out[t] == value;
    out[s] = repeated ? static_cast<T>(j) : value;
  }
}

// Fisher-Yates as in GNNLab (EuroSys'22, section 5.1): draw s takes one of the first degree - s
// entries and moves the last of them into its place. The permutation is virtual. Only moved entries
// are stored: moved[0, fanout) holds positions and moved[fanout, 2 fanout) their values.
template <class DrawFn, class T>
GNNBENCH_HD void pick_fisher_yates(uint32_t degree, uint32_t fanout, DrawFn draw, T* out,
                                   T* moved) {
  for (uint32_t s = 0; s < fanout; ++s) {
    const T last = static_cast<T>(degree - 1 - s);
    const T at = static_cast<T>(bounded(draw(s), degree - s));
    T taken = at, filler = last;
    for (uint32_t t = 0; t < s; ++t) {  // the latest move of an entry counts
      taken = moved[t] == at ? moved[fanout + t] : taken;
      filler = moved[t] == last ? moved[fanout + t] : filler;
    }
    out[s] = taken;
    moved[s] = at;
    moved[fanout + s] = filler;
  }
}

template <class DrawFn, class T>
GNNBENCH_HD void pick_with_replacement(uint32_t degree, uint32_t fanout, DrawFn draw, T* out) {
  for (uint32_t s = 0; s < fanout; ++s) out[s] = static_cast<T>(bounded(draw(s), degree));
}

// Alias method (Walker 1977; tables after Vose 1991): draw 2 s chooses an entry and draw 2 s + 1 is
// its coin. `threshold` and `alias` point to the row's entries.
template <class DrawFn, class T>
GNNBENCH_HD void pick_weighted_alias(const uint32_t* threshold, const uint32_t* alias,
                                     uint32_t degree, uint32_t fanout, DrawFn draw, T* out) {
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint32_t entry = bounded(draw(2 * s), degree);
    const bool keeps = draw(2 * s + 1) < threshold[entry];
    out[s] = static_cast<T>(keeps ? entry : alias[entry]);
  }
}

GNNBENCH_HD uint64_t mul_hi64(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

// Inverse transform sampling: selects the first entry whose inclusive sum exceeds a uniform integer
// below the row's total. Draw 2 s is the integer's high word, draw 2 s + 1 its low word. `prefix`
// points to the row's entries.
template <class DrawFn, class T>
GNNBENCH_HD void pick_weighted_prefix(const int64_t* prefix, uint32_t degree, uint32_t fanout,
                                      DrawFn draw, T* out) {
  const uint64_t total = static_cast<uint64_t>(prefix[degree - 1]);
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint64_t high = draw(2 * s);
    const uint64_t word = high << 32 | draw(2 * s + 1);
    const int64_t target = static_cast<int64_t>(mul_hi64(word, total));
    uint32_t low = 0, count = degree - 1;  // the last entry is right if no earlier one is
    while (count > 0) {
      const uint32_t half = count / 2;
      const bool above = prefix[low + half] > target;
      low = above ? low : low + half + 1;
      count = above ? half : count - half - 1;
    }
    out[s] = static_cast<T>(low);
  }
}

// Any pick except random_walk, for a row with a positive count that is not taken whole. Writes
// fanout positions to out. `moved` is fisher_yates' scratch of 2 fanout words.
template <class DrawFn, class T>
GNNBENCH_HD void pick_row(const PickSpec& spec, int64_t begin, uint32_t degree, uint32_t fanout,
                          DrawFn draw, T* out, T* moved) {
  const WeightTables& t = spec.tables;
  switch (spec.pick) {
    case Pick::kReservoir: return pick_reservoir(degree, fanout, draw, out);
    case Pick::kReservoirThinned: return pick_reservoir_thinned(degree, fanout, draw, out);
    case Pick::kFloyd: return pick_floyd(degree, fanout, draw, out);
    case Pick::kFisherYates: return pick_fisher_yates(degree, fanout, draw, out, moved);
    case Pick::kWithReplacement: return pick_with_replacement(degree, fanout, draw, out);
    case Pick::kWeightedAlias:
      return pick_weighted_alias(t.threshold + begin, t.alias + begin, degree, fanout, draw, out);
    case Pick::kWeightedPrefix:
      return pick_weighted_prefix(t.prefix + begin, degree, fanout, draw, out);
    case Pick::kRandomWalk: return;
  }
}

// Random walks with restart and top-K visit counts (PinSAGE, Ying et al., KDD'18, section 3.1).
// Step t of walk w uses draw 2 (w length + t) as its coin (unused at step 0) and the next draw as
// its neighbour. A walk at a node without in-neighbours returns to the destination. The node of
// every step counts as a visit, also if it is the destination. Writes the top min(fanout, distinct)
// nodes to ids and their visits to counts, most visited first and ties by the smaller id, and
// returns how many. ids and counts have walk.visits() entries. The destination's degree is
// positive. Returns kBadWalk where an entry of indices is not a node, kBadWalkRow where a visited
// row is not within indices.
constexpr uint32_t kBadWalk = 0xFFFFFFFFu;
constexpr uint32_t kBadWalkRow = 0xFFFFFFFEu;

template <class Id, class DrawFn>
GNNBENCH_HD uint32_t pick_random_walk(const Csc<Id>& graph, int64_t vertex, const Walk& walk,
                                      uint32_t fanout, DrawFn draw, Id* ids, uint32_t* counts) {
  uint32_t distinct = 0;
  for (uint32_t w = 0; w < walk.walks; ++w) {
    int64_t at = vertex;
    for (uint32_t t = 0; t < walk.length; ++t) {
      const uint32_t d = 2 * (w * walk.length + t);
      if (t > 0 && draw(d) < walk.restart) at = vertex;
      CscRow row;
      if (!graph.read_row(at, row)) return kBadWalkRow;
      if (row.degree == 0) row = graph.valid_row(vertex);
      const Id next = graph.indices[row.begin + bounded(draw(d + 1), row.degree)];
      if (!graph.has_node(next)) return kBadWalk;
      at = next;
      uint32_t place = 0;
      while (place < distinct && ids[place] != next) ++place;
      if (place == distinct) {
        ids[distinct] = next;
        counts[distinct++] = 0;
      }
      ++counts[place];
    }
  }
  const uint32_t kept = distinct < fanout ? distinct : fanout;
  for (uint32_t k = 0; k < kept; ++k) {
    uint32_t best = k;
    for (uint32_t i = k + 1; i < distinct; ++i) {
      const bool more = counts[i] > counts[best];
      if (more || (counts[i] == counts[best] && ids[i] < ids[best])) best = i;
    }
    const Id id = ids[best];
    const uint32_t count = counts[best];
    ids[best] = ids[k];
    counts[best] = counts[k];
    ids[k] = id;
    counts[k] = count;
  }
  return kept;
}

}  // namespace gnnbench
