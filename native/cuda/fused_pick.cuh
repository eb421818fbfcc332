// The picks of pick.h by groups of lanes: a group of `width` lanes (a power of two, 8 to 32) picks
// for one row, the groups of a warp side by side. All lanes of a warp call every function here,
// with `picks` false where a group has nothing to do. Results are pick.h's slot by slot.
#pragma once

#include "cuda/kernels.h"

namespace gnnbench::cuda {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

struct Group {
  uint32_t width;
  uint32_t lane;  // of the group
};

struct PickRow {
  int64_t begin;    // in the graph's entries
  uint32_t degree;  // of a row that is not taken whole
  bool picks;
};

// Draws in order, four at a time: consecutive draws share a Philox block.
struct BlockDraws {
  Draws draws;
  uint32_t index = 0xFFFFFFFFu;  // no block has it: draw / 4 < 2^30
  Philox4 words = {};

  __device__ uint32_t operator()(uint32_t draw) {
    if ((draw >> 2) != index) {
      index = draw >> 2;
      words = draws.block(index);
    }
    const uint32_t low = draw & 1u ? words.y : words.x;
    const uint32_t high = draw & 1u ? words.w : words.z;
    return draw & 2u ? high : low;
  }
};

// fanout <= width: lane s holds draw s, and learns in step t what slot t became.
__device__ inline void floyd_lanes(const Group& g, const PickRow& row, uint32_t fanout,
                                   const Draws& draws, uint32_t* slots) {
  const uint32_t last = row.degree - fanout + g.lane;
  uint32_t value = 0;
  if (row.picks && g.lane < fanout) value = bounded(draws(g.lane), last + 1);
  for (uint32_t t = 0; t + 1 < fanout; ++t) {
    const uint32_t settled = __shfl_sync(kAllLanes, value, t, g.width);
    if (g.lane > t && settled == value) value = last;  // later slots of the row are all below it
  }
  if (row.picks && g.lane < fanout) slots[g.lane] = value;
}

// Any fanout, width 32: the lanes look for a repeated value together.
__device__ inline void floyd_warp(const Group& g, const PickRow& row, uint32_t fanout,
                                  const Draws& draws, uint32_t* slots) {
  BlockDraws drawn{draws};
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint32_t last = row.degree - fanout + s;
    uint32_t value = bounded(drawn(s), last + 1);
    bool repeated = false;
    for (uint32_t t = g.lane; t < s; t += 32) repeated |= slots[t] == value;
    if (__any_sync(kAllLanes, repeated)) value = last;
    if (g.lane == 0) slots[s] = value;
    __syncwarp();
  }
}

// As floyd_lanes: lane s learns in step t which entry slot t moved, and what into it.
__device__ inline void fisher_yates_lanes(const Group& g, const PickRow& row, uint32_t fanout,
                                          const Draws& draws, uint32_t* slots) {
  const uint32_t last = row.degree - 1 - g.lane;
  uint32_t at = 0;
  if (row.picks && g.lane < fanout) at = bounded(draws(g.lane), row.degree - g.lane);
  uint32_t taken = at, filler = last;
  for (uint32_t t = 0; t + 1 < fanout; ++t) {
    const uint32_t where = __shfl_sync(kAllLanes, at, t, g.width);
    const uint32_t what = __shfl_sync(kAllLanes, filler, t, g.width);
    if (g.lane > t) {
      taken = where == at ? what : taken;
      filler = where == last ? what : filler;
    }
  }
  if (row.picks && g.lane < fanout) slots[g.lane] = taken;
}

// slots[fanout, 2 fanout) hold where and slots[2 fanout, 3 fanout) what was moved. The latest move
// of an entry is the one that holds.
__device__ inline void fisher_yates_warp(const Group& g, const PickRow& row, uint32_t fanout,
                                         const Draws& draws, uint32_t* slots) {
  uint32_t* const where = slots + fanout;
  uint32_t* const what = slots + 2 * fanout;
  BlockDraws drawn{draws};
  for (uint32_t s = 0; s < fanout; ++s) {
    const uint32_t last = row.degree - 1 - s;
    const uint32_t at = bounded(drawn(s), row.degree - s);
    uint32_t move_of_at = 0, move_of_last = 0;  // number of the move, from 1
    for (uint32_t t = g.lane; t < s; t += 32) {
      move_of_at = where[t] == at ? t + 1 : move_of_at;
      move_of_last = where[t] == last ? t + 1 : move_of_last;
    }
    move_of_at = __reduce_max_sync(kAllLanes, move_of_at);
    move_of_last = __reduce_max_sync(kAllLanes, move_of_last);
    if (g.lane == 0) {
      slots[s] = move_of_at ? what[move_of_at - 1] : at;
      what[s] = move_of_last ? what[move_of_last - 1] : last;
      where[s] = at;
    }
    __syncwarp();
  }
}

__device__ __forceinline__ void offer(uint32_t* slots, uint32_t fanout, uint32_t degree,
                                      uint32_t word, uint32_t position) {
  if (position >= degree) return;
  const uint32_t slot = bounded(word, position + 1);
  if (slot < fanout) atomicMax(slots + slot, position);
}

// A slot keeps the largest position that drew it, the last writer of the sequential loop. The
// slots must hold 0 .. fanout - 1, seen by the whole team: `rank` of `size` threads.
__device__ inline void reservoir_offers(uint32_t rank, uint32_t size, uint32_t degree,
                                        uint32_t fanout, const Draws& draws, uint32_t* slots) {
  const uint32_t blocks = (degree - fanout + 3) / 4;
  for (uint32_t b = rank; b < blocks; b += size) {
    const Philox4 words = draws.block(b);
    const uint32_t position = fanout + 4 * b;
    offer(slots, fanout, degree, words.x, position);
    offer(slots, fanout, degree, words.y, position + 1);
    offer(slots, fanout, degree, words.z, position + 2);
    offer(slots, fanout, degree, words.w, position + 3);
  }
}

// Draws that are independent of one another: slot s is what pick.h makes of the draws from
// `draws_a_slot` s on.
template <Pick kPick>
__device__ inline void independent_lanes(const Group& g, const PickRow& row, uint32_t fanout,
                                         const Draws& draws, const WeightTables& tables,
                                         uint32_t* slots) {
  if (!row.picks) return;
  BlockDraws drawn{draws};
  for (uint32_t s = g.lane; s < fanout; s += g.width) {
    const auto from = [&](uint32_t first) {
      return [&drawn, first](uint32_t draw) { return drawn(first + draw); };
    };
    if constexpr (kPick == Pick::kWithReplacement) {
      pick_with_replacement(row.degree, 1, from(s), slots + s);
    } else if constexpr (kPick == Pick::kWeightedAlias) {
      pick_weighted_alias(tables.threshold + row.begin, tables.alias + row.begin, row.degree, 1,
                          from(2 * s), slots + s);
    } else {
      pick_weighted_prefix(tables.prefix + row.begin, row.degree, 1, from(2 * s), slots + s);
    }
  }
}

// The visits of a row's walks in shared memory, for V = walks * length:
//
//   ids Id [V], counts uint16 [V] (0: an earlier visit counts), order uint16 [min(fanout, V)]
template <class Id>
struct Visits {
  Id* ids;
  uint16_t* counts;
  uint16_t* order;

  __device__ Visits(char* memory, uint32_t visits)
      : ids(reinterpret_cast<Id*>(memory)),
        counts(reinterpret_cast<uint16_t*>(ids + visits)),
        order(counts + visits) {}
};

enum class WalkFault : uint32_t { kNone = 0, kBadRow = 1, kBadNode = 2 };

// A lane takes a walk. Faulty steps stay where they are, for the rest of the walk to be defined.
template <class Id>
__device__ inline WalkFault walk_lanes(const Group& g, const Csc<Id>& graph, int64_t vertex,
                                       bool picks, const Walk& walk, const Draws& draws,
                                       const Visits<Id>& visits) {
  WalkFault fault = WalkFault::kNone;
  if (!picks) return fault;
  BlockDraws drawn{draws};
  const int64_t home_begin = graph.indptr[vertex], home_end = graph.indptr[vertex + 1];
  for (uint32_t w = g.lane; w < walk.walks; w += g.width) {
    int64_t at = vertex;
    for (uint32_t t = 0; t < walk.length; ++t) {
      const uint32_t step = w * walk.length + t;
      if (t > 0 && drawn(2 * step) < walk.restart) at = vertex;
      int64_t begin = graph.indptr[at], end = graph.indptr[at + 1];
      const bool sound = begin >= 0 && begin <= end && end <= graph.num_edges &&
                         end - begin <= static_cast<int64_t>(UINT32_MAX);
      if (!sound) fault = WalkFault::kBadRow;
      if (!sound || begin == end) {
        begin = home_begin;
        end = home_end;
      }
      const uint32_t degree = static_cast<uint32_t>(end - begin);
      const Id next = graph.indices[begin + bounded(drawn(2 * step + 1), degree)];
      const bool good = next >= 0 && next < graph.num_nodes;
      if (!good) fault = WalkFault::kBadNode;
      at = good ? next : vertex;
      visits.ids[step] = static_cast<Id>(at);
    }
  }
  return fault;
}

// Ranks the visited nodes by visits, then by id: order[k] is the first visit of the k-th. Returns
// min(fanout, nodes visited), to all lanes of the group.
template <class Id>
__device__ inline uint32_t rank_visits(const Group& g, bool picks, uint32_t num_visits,
                                       uint32_t fanout, const Visits<Id>& visits) {
  __syncwarp();
  uint32_t distinct = 0;
  for (uint32_t i = g.lane; picks && i < num_visits; i += g.width) {
    uint32_t before = 0, count = 0;
    for (uint32_t j = 0; j < num_visits; ++j) {
      const bool same = visits.ids[j] == visits.ids[i];
      count += same;
      before += same && j < i;
    }
    visits.counts[i] = before ? 0 : static_cast<uint16_t>(count);
    distinct += before == 0;
  }
  __syncwarp();
  for (uint32_t i = g.lane; picks && i < num_visits; i += g.width) {
    const Id id = visits.ids[i];
    const uint16_t count = visits.counts[i];
    if (count == 0) continue;
    uint32_t rank = 0;
    for (uint32_t j = 0; j < num_visits; ++j) {
      const uint16_t other = visits.counts[j];
      rank += other > count || (other == count && visits.ids[j] < id);
    }
    if (rank < fanout) visits.order[rank] = static_cast<uint16_t>(i);
  }
  for (uint32_t step = g.width / 2; step > 0; step /= 2) {
    distinct += __shfl_xor_sync(kAllLanes, distinct, step, g.width);
  }
  __syncwarp();
  return distinct < fanout ? distinct : fanout;
}

}  // namespace gnnbench::cuda
