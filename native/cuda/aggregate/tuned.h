// The fastest forward sum of a block's rows in this suite, with weights per edge or per edge and
// head. Its backward is spread_rows.h on the transpose.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// A group of 8, 16 or 32 lanes processes a few consecutive rows. Its lanes read the offsets in one
// load and the columns of one window in another. Offsets, columns and weights are then exchanged by
// shuffle. A lane has one or two packs of 16 bytes of a row (8, 4 or 2 bytes if rows have a smaller
// alignment) and keeps their sums in registers. It loads up to eight edges at once, each load
// predicated, so that a row of at most eight neighbours waits for memory once. Results use
// streaming stores. Rows wider than two packs per lane of a warp are split by columns along the
// grid. All rows of one slice run first, so that L2 holds that slice of x.
//
// A row's edges are added in order. All groups of a block share a row of more than kLongRow edges
// in equal parts, which are added in order. No sum depends on the schedule.
//
// Bytes of the forward, float32: at least 4 * dim * (sources + rows) + 4 * (edges + rows) from
// memory, 4 * dim * (edges + rows) through L2. The input block of batch 8000, 15/10/5 on R-MAT
// scale 21 (162 k rows, 275 k sources, 785 k edges) moves 0.23 GB and 0.49 GB at 128 columns. At a
// copy's 4.29 TB/s this takes 0.053 ms, at 256 columns 0.105 ms. Measured: 0.086 and 0.175 ms,
// which is 5.6 and 5.5 TB/s through L2 (5.1 at 64 columns, where memory has a smaller share). L2,
// not memory, is the bottleneck if sources are read three times each, apart from hubs that hit L1.
constexpr int64_t kTunedLongRow = 128;
constexpr int kTunedMostRows = 7;  // per group

// rows_of_group is 1 to kTunedMostRows. Fewer are used if the GPU would not be full.
template <class T>
void row_sums(Launch launch, const RowSums<T>& sums, int rows_of_group);

}  // namespace gnnbench::cuda
