// FastGL's Memory-Aware aggregation (section 4.2) at its best: a warp for each target.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// The paper's idea: what a target reads for each of its neighbours is in fast memory that the
// program controls, and only the sources' rows come from global memory. Differences from
// memory_aware.h:
//
// - A team sums a target: a warp, or a half or a quarter of one if the row has at most 16 or 8
//   vectors. A lane has 16 bytes of a row (two narrower vectors if rows have a smaller alignment).
//   Its partial sums are in registers, which are faster than shared memory.
// - A team has a few consecutive targets. It reads their offsets in one load and stages ids and
//   weights of all of them, so that a target of a few neighbours does not wait three times. Weights
//   that are all 1 are not staged.
// - A lane has up to eight rows of sources in flight.
// - Rows wider than a team's vectors are split by columns along the grid, as by the paper's Y. All
//   rows of one slice run first, so that L2 holds that slice of x.
//
// Forward: a row of more than kWarpLong edges is summed by all teams of its block in kWarpParts
// parts (the paper: a target must be completed in one block). Backward: a row of the transpose of
// more than WarpPieces::edges edges is split into pieces of so many edges. Its team only enters the
// pieces in a list. A second kernel sums pieces, any team any piece; a third adds the pieces of
// each row. The order of the list depends on the schedule, but no sum does: edges are added in
// order within a row, part or piece, and these are added in order.
//
// Bytes of the forward, float32: at least 4 * dim * (sources + rows) + 4 * (edges + rows) from
// memory, 4 * dim * (edges + rows) through L2. The input block of tuned.h (162 k rows, 275 k
// sources, 786 k edges) moves 0.116 and 0.228 GB from memory at 64 and 128 columns, and 0.243 and
// 0.485 GB through L2. On an H100 (3.35 TB/s from memory; L2 5.5 TB/s as in tuned.h) this takes at
// least 0.035 and 0.068 ms from memory, 0.044 and 0.088 ms through L2. The backward reads a row of
// the gradient for every edge and writes all sources: 0.272 and 0.543 GB through L2, 0.049 and
// 0.099 ms. Measured on an H100: forward 0.055 and 0.108 ms, backward 0.145 and 0.211 ms.
constexpr int64_t kWarpLong = 128;
constexpr int kWarpParts = 8;
constexpr int kWarpMostRows = 7;  // targets of a team
constexpr int kWarpMostWarps = 8;

// A block of `warps` (1 to kWarpMostWarps); a team sums at most `columns` (64 or 128) of a row at
// once and has `rows` targets, 1 to kWarpMostRows: fewer if the GPU would not be full. Results do
// not depend on these.
struct WarpShape {
  int warps, columns, rows;
};

// Pieces of long rows.
template <class T>
struct WarpPieces {
  int32_t* counts;       // [2], zero: of pieces and of long rows
  int32_t* row;          // [pieces], of each piece
  int32_t* begin;        // [pieces], its first edge
  int32_t* long_row;     // [long rows]
  int32_t* first_piece;  // [long rows]
  Sum<T>* sums;          // [pieces, dim]
  int32_t edges;         // of a piece, warp_piece_edges()
};

// At most kWarpMostPieces pieces of at least kWarpLong edges.
constexpr int64_t kWarpMostPieces = 16384;
inline int64_t warp_piece_edges(int64_t num_edges) {
  const int64_t times = blocks_for(2 * num_edges, kWarpLong * kWarpMostPieces);
  return kWarpLong * (times < 1 ? 1 : times);
}
// A row has more edges than a piece, so that it has less than twice edges / piece_edges pieces.
inline int64_t warp_pieces(int64_t num_edges) {
  return 2 * num_edges / warp_piece_edges(num_edges);
}
inline int64_t warp_long_rows(int64_t num_edges) { return num_edges / warp_piece_edges(num_edges); }

template <class T>
void memory_aware_warp(Launch launch, const RowSums<T>& sums, WarpShape shape);

// Sums of a backward (with `block_indptr`) or of mode kSum.
template <class T>
void memory_aware_warp_transposed(Launch launch, const RowSums<T>& sums, WarpShape shape,
                                  const WarpPieces<T>& pieces);

}  // namespace gnnbench::cuda
