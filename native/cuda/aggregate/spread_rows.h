// Sums over rows of very different lengths, as in a transpose: most sources have at most one edge,
// hubs have thousands.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Rows and edges form one sequence, each row before its edges: row i is item indptr[i] + i, edge e
// of row i is item e + i + 1.
//
//     row 0  e0  e1 | row 1  row 2  e2 | row 3  e3  e4  e5 ...
//     \__ window __/ \__ window __/      one item per lane of the group
//
// A group of lanes processes one chunk of the sequence. It finds its first row by a search with as
// many parts as it has lanes. Then it processes one window at a time, one item per lane. The rows
// that begin in a window follow from the offsets of as many rows as there are lanes: one bit per
// item. An item adds one row of x (or a row's own term). Several of these rows are loaded at once,
// whichever sums they belong to. The columns of the next window and the offsets of the window after
// it are loaded in advance. When a row begins, the previous row is written.
//
// A row that continues behind its chunk is split. The chunk that it begins in stores its sum, and
// so does each chunk that it reaches into. A second kernel adds these sums in order. There are no
// counters and no waits: all sizes follow from the block's. The edges of a row are added in order
// within a chunk; no sum depends on the schedule.
//
// Bytes: those of tuned.h, plus a few offsets and at most 2 sums of a row per chunk. The backward
// over the block described there (274 k rows, 782 k edges to 161 k columns, float32) moves 0.116 GB
// from memory and 0.270 GB through L2 at 64 columns, 0.227 and 0.541 GB at 128. At the forward's
// L2 rate of 5.5 TB/s this takes 0.049 and 0.098 ms. In a block sampled in the same way 23 % of the
// sources have no edge, 44 % one, 0.6 % more than 64 (with 23 % of the edges), and one 2,705.
// Measured on an H200 (chunks of 128): 0.122 and 0.177 ms, 0.270 at 256 columns (0.197 at the L2
// rate), 0.85 at 604, and 1.26 at 602, whose packs have 8 bytes.
constexpr int64_t kSpreadItems = 128;
constexpr int64_t kSpreadChunks = 16384;  // at most
constexpr int64_t kSpreadGroups = 4096;   // about as many as a GPU runs at once

// Items per chunk, a multiple of a warp's lanes: fewer if a small block would leave the GPU idle,
// more if there would be more than kSpreadChunks chunks.
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

// Memory for the partial sums of split rows; null if there is one chunk.
template <class T>
struct RowPieces {
  Sum<T>* begun;    // [chunks, dim], of the row that begins in a chunk and continues behind it
  Sum<T>* reached;  // [chunks, dim], of the row that began before a chunk
  int32_t* rows;    // [chunks], the row whose sum is in `begun`, or -1
};

// Sums of a backward (with `block_indptr`) or of mode kSum. An indptr that decreases or leaves the
// edges, or an index out of range, fails a device assert.
template <class T>
void spread_row_sums(Launch launch, const RowSums<T>& sums, const RowPieces<T>& pieces);

}  // namespace gnnbench::cuda
