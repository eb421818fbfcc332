// The picks of one hop, row after row: the first loop of FastSample's Algorithm 1, and the sampling
// step of the pipeline that it replaces (FastSample, section 3.2). Both have no vector instructions
// of their own and no prefetching. Random walks, whose counts are not known in advance, are in
// walk.h.
#pragma once

#include "cpu/hop/hop.h"

namespace gnnbench {

// Counts the edges of every row. Writes starts [num_chunks(n, kRowChunk)], the first edge of each
// chunk.
template <class Id>
HopCount count_choices(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                       int64_t* starts);

// Where a hop's edges are written. CSC has `indptr`, COO has `targets`; the other one is null.
template <class Id>
struct Choices {
  int32_t* indptr;     // [n + 1]
  Id* targets;         // [edges], the row's destination
  Id* neighbors;       // [edges]
  int64_t* positions;  // [edges], or null
};

// Picks the neighbours of every row. `scratch` has pick_hop_scratch(draws, edges) words. Returns
// kBadTables or kBadNeighbor if the tables or the graph are invalid.
template <class Id>
FaultAt choose(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
               const int64_t* starts, uint32_t* scratch, const Choices<Id>& to);

}  // namespace gnnbench
