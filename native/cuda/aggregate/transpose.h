// A block's transpose: for each source, its edges in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// By counting. A first pass counts the edges of each source; an atomic gives each edge a rank among
// them, in nondeterministic order. A scan turns the counts into offsets. A second pass writes each
// edge and its destination to its place. Finally each source's edges are sorted, so that the result
// equals that of a stable sort. Up to kRankedRow edges are ranked by counting the smaller ones.
// Longer rows are sorted by the block in which they begin, in shared memory up to kSortedTile edges
// and otherwise in tiles that are merged. A radix sort would move all edges three times for 18-bit
// sources; here each is written twice.
//
// Bytes per edge: to count 4 read and 4 written; to place 12 read (and 4 at random) and 8 written
// at random; to sort 12 read (and 8 at random, but close together) and 8 written. In all 52 per
// edge and 8 per source. A block of 785 k edges stays in L2. The lower bound is then set by
// atomics, random writes and six launches.
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

// t_indptr [num_src + 1], t_dst and t_edge [num_edges]: destination and index of each source's
// edges. An indptr that does not cover the edges, or an index out of range, fails a device assert.
void transpose(Launch launch, const int32_t* indptr, const int32_t* indices, int64_t num_edges,
               int64_t num_src, int64_t num_dst, TransposeScratch scratch, int32_t* t_indptr,
               int32_t* t_dst, int32_t* t_edge);

}  // namespace gnnbench::cuda
