// Fused sampling directly into CSC (FastSample, Algorithm 1). Offsets come from the counts. Each
// picked neighbour is looked up in a map from nodes to local ids as it is read, and a new one is
// claimed at once. The output is the block; there is no list of sampled edges.
//
// Two parallel passes per hop:
//   sample  chunks of rows: pick, read, look up or claim, write local ids
//   settle  closes gaps that workers left in the ids, which changes few ids; reads the new nodes'
//           rows for the next hop; after the last hop clears the touched entries of the map
//
// One worker assigns ids in order of first occurrence, several in a nondeterministic order.
//
// Lower bound of a batch: per node 16 bytes of indptr and two accesses to the map (claim, clear),
// per edge an entry of indices and one of the map, all at random; 4 bytes written per edge; per row
// longer than the fanout ceil(fanout / 4) Philox blocks and, for Floyd, fanout^2 / 2 comparisons,
// an eighth of that in vector lanes. On a graph within the last-level cache, instructions and
// mispredicted branches dominate: the inner loops have no branch that depends on the data.
#pragma once

#include <algorithm>
#include <bit>

#include "cpu/common/prefetch.h"
#include "cpu/fastsample/claims.h"
#include "cpu/fastsample/look_up.h"
#include "cpu/hop/hop.h"

namespace gnnbench {

// A chunk of rows keeps this many edges in the L1 cache. If eight rows do not fit, they are
// processed one by one.
constexpr int64_t kFusedEdges = 4096;
constexpr int64_t kFusedMinRows = 8;
constexpr uint32_t kFusedFanout = kFusedEdges / kFusedMinRows;

// Rows per unit of parallel work, a power of two.
inline int64_t fused_rows(uint32_t fanout) {
  if (fanout > kFusedFanout) return kFusedMinRows;
  return std::min<int64_t>(std::bit_floor(uint64_t{kFusedEdges} / fanout), 128);
}

// Number of workers for a hop of n rows.
inline int64_t fused_workers(int64_t n, uint32_t fanout) {
  return std::clamp<int64_t>(num_chunks(n, fused_rows(fanout)), 1, num_threads());
}

template <class Id>
struct FusedHop {
  Csc<Id> csc;
  HopDraws draws;
  const Id* dst;    // [n]
  const Row* rows;  // [n]
  int64_t n;
  const int64_t* starts;  // [num_chunks(n, fused_rows)], the first edge of each chunk
  const Id* walked;       // [edges] neighbours of random walks, to be mapped only; else null
  uint32_t* moved;        // [workers, 2 fanout] for fisher_yates above kFusedFanout, else null
  int64_t edges;
  int64_t known;    // number of local ids assigned before
  int64_t workers;  // fused_workers(n, fanout)
  Claims<Id>* claims;
  int32_t* indptr;     // [n + 1], written unless walked
  int32_t* indices;    // [edges]
  int64_t* positions;  // [edges], or null
};

// Results of settling that the next hop reads.
template <class Id>
struct FusedNext {
  bool last;              // no next hop: writes no rows and clears the map
  HopDraws draws;         // of the next hop
  int64_t first;          // index of its first destination among the nodes
  const Id* known;        // [hop.known]
  const Row* known_rows;  // [hop.known - first]
  int64_t total;          // number of nodes: claims.close_up(hop.known)
  Id* nodes;              // [total]
  Row* rows;              // [total - first]
  int64_t* sums;          // [num_chunks(total - first, fused_rows)], edges of each chunk
};

// Reads the rows of the seeds and sums their edges per chunk.
template <class Id>
FaultAt fused_rows_of(const Csc<Id>& csc, const HopDraws& draws, const Id* nodes, int64_t n,
                      Row* rows, int64_t* sums);

// Assigns the first local ids to the seeds, in order.
template <class Map, class Id>
Fault fused_seeds(const Map& map, const Id* seeds, int64_t n);

// The sampling pass. After a fault the claims list the entries touched.
template <class Map, class Id>
FaultAt fused_sample(const Map& map, const FusedHop<Id>& hop);

// The settling pass.
template <class Map, class Id>
FaultAt fused_settle(const Map& map, const FusedHop<Id>& hop, const FusedNext<Id>& next);

// Closes gaps in local ids: ids from known + dense on are replaced according to `bases`.
void settle_ids(const int32_t* bases, int64_t known, int64_t dense, int32_t* indices, int64_t n);

// FastSample's map: entry v is node v's local id or kUnclaimed.
template <class Id>
struct DenseMap {
  static constexpr int64_t kClaimAhead = 24;  // keys between a prefetch and its use
  static constexpr bool kClears = true;

  int32_t* ids;  // [num_nodes]
  bool to_own;   // prefetch looked-up lines for writing

  void prefetch(Id node) const { prefetch_to_own(ids + node); }
  void clear(Id node) const { ids[node] = kUnclaimed; }
  void name(Id node, int32_t id) const { ids[node] = id; }

  // Masks instead of a branch on whether a node is known, because compilers turn conditions into
  // branches. Seemingly unknown nodes are first listed, then claimed: only they pay for an
  // exchange.
  template <bool kShared>
  int64_t claim(const Id* keys, int64_t n, int32_t first, Id* fresh, int32_t* out) const {
    int32_t* const map = ids;
    const auto select = [](bool condition, int32_t yes, int32_t no) {
      const int32_t mask = -static_cast<int32_t>(condition);
      return (yes & mask) | (no & ~mask);
    };
    int32_t unknown[kClaimBlock + kLookUpWide];
    const int64_t count = look_up(map, keys, n, out, unknown, to_own);
    int64_t claimed = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Id key = keys[unknown[i]];
      const int32_t mine = first + static_cast<int32_t>(claimed);
      bool won;
      int32_t found = kUnclaimed;
      if constexpr (kShared) {
        prefetch_to_own(map + keys[unknown[std::min(i + kClaimAhead, count - 1)]]);
        won = std::atomic_ref(map[key]).compare_exchange_strong(found, mine,
                                                                std::memory_order_relaxed);
        out[unknown[i]] = select(won, mine, found);
      } else {
        found = map[key];
        won = found == kUnclaimed;
        map[key] = out[unknown[i]] = select(won, mine, found);
      }
      fresh[claimed] = key;
      claimed += won;
    }
    return claimed;
  }
};

}  // namespace gnnbench
