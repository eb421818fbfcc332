// A block's transpose: for each source, its edges in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// By counting: a pass counts the edges of each source and gives each edge a place among them, in
// the order in which atomics happen to come; a scan makes offsets of the counts; a second pass
// writes each edge with its destination to its place. Then each source's edges are put in order, so
// that the result is that of a stable sort whatever came first: those of at most kRankedRow edges
// by counting for each edge how many are below it, longer ones by the block in which they begin, in
// shared memory up to kSortedTile edges and in tiles that are merged beyond. A sort by digits moves
// all edges three times where sources have 18 bits; here each is written twice.
//
// Bytes: 4 read and 4 written an edge to count, 12 read (and 4 at random) and 8 written at random
// to place, 12 read (and 8 at random, close together) and 8 written to put in order: 52 an edge and
// 8 a source. On a block of 785 k edges that lies in L2 throughout; the floor are its atomics and
// random writes, and six launches.
constexpr int64_t kRankedRow = 64;
constexpr int kSortedTile = 4096;

struct TransposeScratch {
  int32_t* ranks;    // [num_edges]
  uint64_t* placed;  // [num_edges], edge << 32 | destination
  uint64_t* merged;  // [num_edges]
  void* scan;
  size_t scan_bytes;  // transpose_scan_bytes
};

size_t transpose_scan_bytes(Launch launch, int64_t num_src);

// t_indptr [num_src + 1], t_dst and t_edge [num_edges]: destination and number of each source's
// edges. An indptr that does not cover the edges, or an index out of range, fails a device assert.
void transpose(Launch launch, const int32_t* indptr, const int32_t* indices, int64_t num_edges,
               int64_t num_src, int64_t num_dst, TransposeScratch scratch, int32_t* t_indptr,
               int32_t* t_dst, int32_t* t_edge);

}  // namespace gnnbench::cuda
