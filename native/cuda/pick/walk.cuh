// Random walks by a group of lanes, one walk per lane; gnnbench/pick.h defines them.
#pragma once

#include "cuda/pick/team.cuh"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/pick.h"

namespace gnnbench::cuda {

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

// `home` is the row of `vertex`. An invalid step stays in place, so that the rest of the walk is
// defined.
template <class Id>
__device__ inline Fault walk_lanes(const Lanes& g, const Csc<Id>& graph, int64_t vertex,
                                   const CscRow& home, bool picks, const Walk& walk,
                                   const Draws& draws, const Visits<Id>& visits) {
  Fault fault = Fault::kNone;
  if (!picks) return fault;
  CachedDraws drawn{draws};
  for (uint32_t w = g.lane; w < walk.walks; w += g.width) {
    int64_t at = vertex;
    for (uint32_t t = 0; t < walk.length; ++t) {
      const uint32_t step = w * walk.length + t;
      if (t > 0 && drawn(2 * step) < walk.restart) at = vertex;
      CscRow row = home;
      if (!graph.read_row(at, row)) fault = Fault::kBadRow;
      if (row.degree == 0) row = home;
      const Id next = graph.indices[row.begin + bounded(drawn(2 * step + 1), row.degree)];
      const bool good = graph.has_node(next);
      if (!good) fault = Fault::kBadNeighbor;
      at = good ? next : vertex;
      visits.ids[step] = static_cast<Id>(at);
    }
  }
  return fault;
}

// Ranks the visited nodes by visits, then by id: order[k] is the first visit of the k-th node.
// Returns min(fanout, nodes visited) to all lanes of the group.
template <class Id>
__device__ inline uint32_t rank_visits(const Lanes& g, bool picks, uint32_t num_visits,
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
