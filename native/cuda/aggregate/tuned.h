// The fastest sum of a block's rows of this suite, with weights of edges or of edges and heads. Of
// its backward, the sums of the transpose's rows, spread_rows.h.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// A group of 8, 16 or 32 lanes owns a few consecutive rows, of which its lanes read the offsets in
// one load and the columns, a window at a time, in one more; offsets, columns and weights then
// travel by shuffle. A lane owns one or two packs of 16 bytes of a row (of 8, 4 or 2 where rows are
// not aligned to more), keeps their sums in registers and asks for up to eight edges at once, each
// load predicated: a row of at most eight neighbours waits for memory once. Results are stored past
// the caches. Rows wider than a warp's two packs are cut by columns along the grid, all rows of one
// cut first: its share of x is what L2 then holds.
//
// A row's edges are added in their order; those of a row of more than kLongRow edges by all groups
// of a block in equal parts, which are added in order. No sum depends on the schedule.
//
// Bytes of the forward, float32: 4 * dim * (sources + rows) + 4 * (edges + rows) from memory at
// least, 4 * dim * (edges + rows) through L2. The input block of batch 8000, 15/10/5 of R-MAT scale
// 21 (162 k rows, 275 k sources, 785 k edges): 0.23 GB and 0.49 GB at 128 columns; at the 4.29 TB/s
// of a copy 0.053 ms, at 256 columns 0.105 ms. Measured there 0.086 and 0.175 ms: 5.6 and 5.5 TB/s
// through L2, and 5.1 at 64 columns, where memory's share is less. L2, not memory, is the bound
// where sources are met three times, but for what hubs find in L1.
constexpr int64_t kTunedLongRow = 128;
constexpr int kTunedMostRows = 7;  // of a group

// rows_of_group 1 to kTunedMostRows; fewer are taken where the GPU would not be full.
template <class T>
void row_sums(Launch launch, const RowSums<T>& sums, int rows_of_group);

}  // namespace gnnbench::cuda
