// Sums over rows of very different lengths, as a transpose has them: most sources have one edge or
// none, hubs have thousands.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Rows and edges are laid in one line, each row before its edges: row i is item indptr[i] + i. A
// group of lanes has a chunk of that line, kSpreadItems long, and finds its first row by a search
// in as many parts as it has lanes. It adds up all rows that begin in its chunk, to their ends, and
// asks for eight edges at once whatever rows they are of: where rows have one edge, eight rows wait
// for memory once. A row of more edges than a chunk has items is long. It is cut where chunks are
// cut: each chunk that it reaches into adds up its piece (the first of them also what lies before),
// and a second kernel adds up the pieces of a row in their order. Nothing is counted and nothing
// waits: all sizes follow from the block's. Edges of a row, or of a piece, are added in their
// order; no sum depends on the schedule.
//
// A chunk is that multiple of kSpreadItems with which there are no more chunks than rows (or than
// kSpreadChunks): the pieces' sums take no more memory than the result would in their dtype.
//
// Bytes are those of tuned.h, and for each chunk a few offsets and at most 8 * dim for a piece. The
// backward over the block that is told of there (274 k rows, 782 k edges to 161 k columns, float32)
// has 0.116 GB from memory and 0.270 GB through L2 at 64 columns, 0.227 and 0.541 GB at 128; at
// the 5.5 TB/s that the forward has through L2 0.049 and 0.098 ms. Of a block drawn alike 23 % of
// the sources have no edge, 44 % one, 0.6 % more than 64 (those have 23 % of the edges), one 2,705.
constexpr int64_t kSpreadItems = 64;
constexpr int64_t kSpreadChunks = 16384;  // more than a GPU has groups at once

// Items of a chunk; a row of more edges is long.
inline int64_t chunk_items(int64_t num_edges, int64_t num_rows) {
  const int64_t most = num_rows > kSpreadChunks ? num_rows : kSpreadChunks;
  const int64_t times = blocks_for(num_edges + num_rows, kSpreadItems * most);
  return kSpreadItems * (times < 1 ? 1 : times);
}

inline int64_t num_chunks(int64_t num_edges, int64_t num_rows) {
  return blocks_for(num_edges + num_rows, chunk_items(num_edges, num_rows));
}

// Room for num_chunks pieces of long rows; null where no row can be long.
template <class T>
struct RowPieces {
  Sum<T>* values;  // [chunks, dim]
  Sum<T>* totals;  // [chunks], of weights
  int32_t* rows;   // [chunks], the long row that a chunk has a piece of, or -1
};

inline bool needs_pieces(int64_t num_edges, int64_t num_rows) {
  return num_edges > chunk_items(num_edges, num_rows);
}

// An indptr that does not ascend within the edges, or an index out of range, fails a device assert.
template <class T>
void spread_row_sums(Launch launch, const RowSums<T>& sums, const RowPieces<T>& pieces);

}  // namespace gnnbench::cuda
