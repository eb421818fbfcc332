// One hop of neighbour sampling, DGL's method: counts are known beforehand (min(fanout, degree)),
// a scan gives every row its place, and the picks are written straight into it, in parallel.
//
// The floor per destination: 16 bytes of indptr at random, one cache line per picked entry of
// indices at random (the rows are what does not fit the caches), ceil(fanout / 4) Philox blocks
// and fanout^2 / 2 comparisons (Floyd). Everything else streams: 4 bytes in and out per edge for
// the pick and the id.
#pragma once

#include <cstdint>

#include "gnnbench/pick.h"

namespace gnnbench {

// Compressed sparse columns of in-neighbours.
template <class Id>
struct Csc {
  const int64_t* indptr;
  const Id* indices;
  int64_t num_nodes;
  int64_t num_edges;
};

// What every draw of one hop depends on, besides the vertex.
struct HopDraws {
  Pick pick;
  uint32_t fanout;
  uint64_t key;
  uint32_t hop;
  uint32_t batch;
};

// A destination's row in the CSC.
struct Row {
  int64_t begin;
  int64_t degree;
};

enum class HopError { kNone, kDstOutOfRange, kRowOutOfRange, kTooManyEdges };

constexpr int64_t kRowChunk = 256;  // rows per unit of parallel work

struct HopCount {
  HopError error;
  int64_t where;  // first position in dst that is wrong
  int64_t edges;
};

// First pass. Fills rows [n] and starts [num_chunks(n, kRowChunk)], the first edge of each chunk.
template <class Id>
HopCount count_hop(const Csc<Id>& csc, const Id* dst, int64_t n, uint32_t fanout, Row* rows,
                   int64_t* starts);

// Second pass. Fills out_indptr [n + 1], neighbors [edges] and, unless null, positions [edges];
// picks [edges] is scratch. Returns false where a picked entry of indices is not a node.
template <class Id>
bool pick_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws, const Row* rows,
              const int64_t* starts, uint32_t* picks, int32_t* out_indptr, Id* neighbors,
              int64_t* positions);

}  // namespace gnnbench
