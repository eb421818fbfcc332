// Sums over rows of very different lengths, as a transpose has them: most sources have one edge or
// none, hubs have thousands.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Rows and edges are laid in one line, each row before its edges: row i is item indptr[i] + i, edge
// e of it item e + i + 1.
//
//     row 0  e0  e1 | row 1  row 2  e2 | row 3  e3  e4  e5 ...       two rows of one item or more
//     \__ window __/ \__ window __/                                  in a window, a lane an item
//
// A group of lanes has a chunk of that line and finds its first row by a search in as many parts as
// it has lanes; from there it goes a window at a time, an item a lane. The rows that begin in a
// window are read off the offsets of as many rows as there are lanes: a bit an item. What an item
// adds is a column's row of x (a row's own term is one of these), which is asked for some items at
// once, whatever rows they are of. Of the next window the columns, and of the one behind it the
// offsets, are on their way meanwhile. Where a row begins, the one before it is written.
//
// A row that goes on behind its chunk is cut: the chunk that it begins in keeps its sum, and so
// does each chunk that it reaches into; a second kernel adds these up in their order. Nothing is
// counted and nothing waits: all sizes follow from the block's. Edges of a row are added in their
// order within a chunk; no sum depends on the schedule.
//
// Bytes are those of tuned.h, and for each chunk a few offsets and at most 2 sums of a row. The
// backward over the block described there (274 k rows, 782 k edges to 161 k columns, float32)
// has 0.116 GB from memory and 0.270 GB through L2 at 64 columns, 0.227 and 0.541 GB at 128; at
// the 5.5 TB/s that the forward has through L2 0.049 and 0.098 ms. Of a block drawn alike 23 % of
// the sources have no edge, 44 % one, 0.6 % more than 64 (those have 23 % of the edges), one 2,705.
// Measured on an H200 (chunks of 128): 0.122 and 0.177 ms, 0.270 at 256 columns (0.197 by L2's
// rate), 0.85 at 604, and 1.26 at 602, whose packs are of 8 bytes.
constexpr int64_t kSpreadItems = 128;
constexpr int64_t kSpreadChunks = 16384;  // at most
constexpr int64_t kSpreadGroups = 4096;   // about as many as a GPU has at once

// Items of a chunk, a multiple of a warp's lanes: fewer where a small block would leave a GPU idle,
// more where there are more than kSpreadChunks of them.
inline int64_t chunk_items(int64_t num_edges, int64_t num_rows) {
  const int64_t items = num_edges + num_rows;
  const int64_t even = 32 * blocks_for(items, 32 * kSpreadGroups);
  if (even < kSpreadItems) return even < 32 ? 32 : even;
  const int64_t times = blocks_for(items, kSpreadItems * kSpreadChunks);
  return kSpreadItems * (times < 1 ? 1 : times);
}

inline int64_t num_chunks(int64_t num_edges, int64_t num_rows) {
  return blocks_for(num_edges + num_rows, chunk_items(num_edges, num_rows));
}

// Room for the parts of rows that are cut; null where there is one chunk.
template <class T>
struct RowPieces {
  Sum<T>* begun;    // [chunks, dim], of the row that begins in a chunk and goes on behind it
  Sum<T>* reached;  // [chunks, dim], of the row that began before a chunk
  int32_t* rows;    // [chunks], the row whose sum is in `begun`, or -1
};

// Sums of a backward (`block_indptr`), or of mode kSum. An indptr that does not ascend within the
// edges, or an index out of range, fails a device assert.
template <class T>
void spread_row_sums(Launch launch, const RowSums<T>& sums, const RowPieces<T>& pieces);

}  // namespace gnnbench::cuda
