// Fused sampling straight into CSC (FastSample, Algorithm 1): offsets come from the counts, picked
// neighbours are looked up in a map from nodes to local ids as they are fetched, new ones are
// claimed on the spot, and what is written is the block; a list of sampled edges never exists.
//
// Two parallel passes a hop:
//   sample  chunks of rows: pick, fetch, look up or claim, write the local id or the claim's code
//   settle  claims are numbered: codes become ids, and the new nodes' rows are read for the next
//           hop; after the last hop the map is cleared, touched entries only
//
// With one worker ids are final at once, in order of first occurrence. With more, a claim in the
// dense map is a plain store: where two workers claim one node the last store wins, and settling
// finds the claims that did not (their entry is another's) and drops them. That costs one load per
// new node, where an atomic exchange would hold up every claim.
//
// The floor of a batch: per node 16 bytes of indptr and three accesses to the map (claim, name,
// clear), per edge an entry of indices and one of the map, all at random; per edge 4 bytes written,
// with several workers twice; per row longer than the fanout ceil(fanout / 4) Philox blocks and, of
// Floyd, fanout^2 / 2 comparisons, an eighth of that in vector lanes. On a graph within the last
// cache instructions and mispredicted branches are what it comes to: the inner loops have no
// branch that depends on the data.
#pragma once

#include <algorithm>
#include <bit>

#include "cpu/fastsample_claims.h"
#include "cpu/sample_hop.h"

namespace gnnbench {

// A chunk of rows keeps this many edges in the first-level cache; where eight rows do not fit, they
// go one by one.
constexpr int64_t kFusedEdges = 4096;
constexpr int64_t kFusedMinRows = 8;
constexpr uint32_t kFusedFanout = kFusedEdges / kFusedMinRows;

// Rows per unit of parallel work, a power of two.
inline int64_t fused_rows(uint32_t fanout) {
  if (fanout > kFusedFanout) return kFusedMinRows;
  return std::min<int64_t>(std::bit_floor(uint64_t{kFusedEdges} / fanout), 128);
}

// Workers of a hop of n rows.
inline int64_t fused_workers(int64_t n, uint32_t fanout) {
  return std::clamp<int64_t>(num_chunks(n, fused_rows(fanout)), 1, num_threads());
}

struct FusedFault {
  enum Kind { kNone, kRepeatedSeed, kBadRow, kBadIndices, kBadTables } kind = kNone;
  int64_t where = 0;  // kRepeatedSeed: its position; kBadRow: the node
};

template <class Id>
struct FusedHop {
  Csc<Id> csc;
  HopDraws draws;
  const Id* dst;    // [n]
  const Row* rows;  // [n]
  int64_t n;
  const int64_t* starts;  // [num_chunks(n, fused_rows)], the first edge of each chunk
  const Id* walked;       // [edges] neighbours of random walks, which are only mapped; else null
  uint32_t* moved;        // [workers, 2 fanout] for fisher_yates above kFusedFanout, else null
  int64_t edges;
  int64_t known;    // local ids given out before
  int64_t workers;  // fused_workers(n, fanout)
  Claims<Id>* claims;
  int32_t* indptr;     // [n + 1], written unless walked
  int32_t* indices;    // [edges]
  int64_t* positions;  // [edges], or null
};

// What settling a hop leaves to the next one.
template <class Id>
struct FusedNext {
  bool last;              // there is none: no rows, and the map is cleared
  HopDraws draws;         // of the next hop
  int64_t first;          // its first destination among the nodes
  const Id* known;        // [hop.known]
  const Row* known_rows;  // [hop.known - first]
  int64_t total;          // of nodes: claims.number(hop.known)
  Id* nodes;              // [total]
  Row* rows;              // [total - first]
  int64_t* sums;          // [num_chunks(total - first, fused_rows)], edges of each chunk
};

// Rows of the seeds and their sums.
template <class Id>
FusedFault fused_rows_of(const Csc<Id>& csc, const HopDraws& draws, const Id* nodes, int64_t n,
                         Row* rows, int64_t* sums);

// Gives the seeds, in order, the first local ids.
template <class Map, class Id>
FusedFault fused_seeds(const Map& map, const Id* seeds, int64_t n);

// The sampling pass. After a fault the claims say what has been touched.
template <class Map, class Id>
FusedFault fused_sample(const Map& map, const FusedHop<Id>& hop);

// The settling pass; lowers next.total by the claims that were dropped.
template <class Map, class Id>
FusedFault fused_settle(const Map& map, const FusedHop<Id>& hop, FusedNext<Id>& next);

// FastSample's map: entry v is node v's local id, a claim's code or kUnclaimed.
template <class Id>
struct DenseMap {
  static constexpr bool kMayLose = true;
  static constexpr int64_t kClaimAhead = 48;  // keys between a prefetch and its use

  int32_t* ids;  // [num_nodes]

  void prefetch(Id node) const { __builtin_prefetch(ids + node, 1); }
  int32_t get(Id node) const { return entry(node).load(std::memory_order_relaxed); }
  void set(Id node, int32_t id) const { entry(node).store(id, std::memory_order_relaxed); }
  void clear(Id node) const { set(node, kUnclaimed); }
  bool owns(Id node, int32_t code) const { return get(node) == code; }

  bool name(Id node, int32_t code, int32_t id) const {
    const bool owned = owns(node, code);
    if (owned) set(node, id);
    return owned;
  }

  // No branch on whether a node is known: written with masks, since a compiler makes branches of
  // conditions. Shared lines that are only read must stay in every worker's cache, so a known node
  // stores to a spare place then.
  template <bool kShared>
  int64_t claim(const Id* keys, int64_t n, int32_t first, Id* fresh, int32_t* out) const {
    int32_t* const map = ids;
    int32_t spare = 0;
    const intptr_t from_spare =
        reinterpret_cast<intptr_t>(map) - reinterpret_cast<intptr_t>(&spare);
    int64_t claimed = 0;
    for (int64_t e = 0; e < n; ++e) {
      __builtin_prefetch(map + keys[std::min(e + kClaimAhead, n - 1)], 1);
      const Id key = keys[e];
      const int32_t found = std::atomic_ref(map[key]).load(std::memory_order_relaxed);
      const int32_t rank = static_cast<int32_t>(claimed);
      const int32_t mine = kShared ? first - rank : first + rank;
      const bool unknown = found == kUnclaimed;
      const int32_t mask = -static_cast<int32_t>(unknown);
      const int32_t id = (mine & mask) | (found & ~mask);
      if constexpr (kShared) {
        const intptr_t offset = from_spare + static_cast<intptr_t>(key) * 4;
        auto* const to = reinterpret_cast<int32_t*>(reinterpret_cast<intptr_t>(&spare) +
                                                    (offset & static_cast<intptr_t>(mask)));
        std::atomic_ref(*to).store(id, std::memory_order_relaxed);
      } else {
        map[key] = id;
      }
      out[e] = id;
      fresh[claimed] = key;
      claimed += unknown;
    }
    return claimed;
  }

 private:
  std::atomic_ref<int32_t> entry(Id node) const { return std::atomic_ref(ids[node]); }
};

}  // namespace gnnbench
