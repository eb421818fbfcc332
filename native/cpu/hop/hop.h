// One hop of neighbour sampling by DGL's method: counts are known in advance (pick_count), a scan
// gives every row its place, and picks are written to it in parallel. Random walks, whose counts
// are not known in advance, are in walk.h.
//
// Lower bound per destination: 16 bytes of indptr at random, one cache line per picked entry of
// indices at random (the rows do not fit the caches), the Philox blocks of its draws and the
// comparisons of its pick (Floyd: fanout^2 / 2). The rest streams: 4 bytes in and out per edge for
// the pick and the id.
#pragma once

#include <cstdint>

#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/pick.h"

namespace gnnbench {

// A destination's row in the CSC.
struct Row {
  int64_t begin;
  uint32_t degree;
  uint32_t count;  // number of edges
};

constexpr int64_t kRowChunk = 256;  // rows per unit of parallel work

struct HopCount {
  Fault fault;    // kBadSeed or kBadRow
  int64_t where;  // first invalid position in dst
  int64_t edges;  // can exceed what a block holds
};

// First pass. Writes rows [n] and starts [num_chunks(n, kRowChunk)], the first edge of each chunk.
// For random walks the edges are an upper bound.
template <class Id>
HopCount count_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws, Row* rows,
                   int64_t* starts);

// Number of scratch words of pick_hop.
int64_t pick_hop_scratch(const HopDraws& draws, int64_t edges);

// Second pass. Writes out_indptr [n + 1], neighbors [edges] and, unless null, positions [edges].
// Returns kBadTables or kBadNeighbor if the tables or the graph are invalid.
template <class Id>
FaultAt pick_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                 const Row* rows, const int64_t* starts, uint32_t* scratch, int32_t* out_indptr,
                 Id* neighbors, int64_t* positions);

}  // namespace gnnbench
