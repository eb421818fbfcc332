// One hop of neighbour sampling, DGL's method: counts are known beforehand (pick_count), a scan
// gives every row its place, and the picks are written straight into it, in parallel. Random walks,
// whose counts are known afterwards, are in walk.h.
//
// The floor per destination: 16 bytes of indptr at random, one cache line per picked entry of
// indices at random (the rows are what does not fit the caches), the Philox blocks of its draws
// and the comparisons of its pick (Floyd: fanout^2 / 2). Everything else streams: 4 bytes in and
// out per edge for the pick and the id.
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
  uint32_t count;  // of edges
};

constexpr int64_t kRowChunk = 256;  // rows per unit of parallel work

struct HopCount {
  Fault fault;    // kBadSeed or kBadRow
  int64_t where;  // first position in dst that is wrong
  int64_t edges;  // may be more than a block holds
};

// First pass. Fills rows [n] and starts [num_chunks(n, kRowChunk)], the first edge of each chunk.
// Of random walks the edges are the most there can be.
template <class Id>
HopCount count_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws, Row* rows,
                   int64_t* starts);

// Words of scratch that pick_hop takes.
int64_t pick_hop_scratch(const HopDraws& draws, int64_t edges);

// Second pass. Fills out_indptr [n + 1], neighbors [edges] and, unless null, positions [edges].
// kBadTables or kBadNeighbor where something is wrong.
template <class Id>
FaultAt pick_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                 const Row* rows, const int64_t* starts, uint32_t* scratch, int32_t* out_indptr,
                 Id* neighbors, int64_t* positions);

}  // namespace gnnbench
