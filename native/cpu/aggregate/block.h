// A block (or its transpose) as the kernels see it, and its checks.
#pragma once

#include <cstdint>

namespace gnnbench {

// Rows of a block (or of its transpose), offsets and ids int32.
struct BlockView {
  const int32_t* indptr;
  const int32_t* indices;
  int64_t num_rows;
  int64_t num_edges;
};

// Returns the first row whose offsets are wrong, or -1.
int64_t find_bad_row(const int32_t* indptr, int64_t num_rows, int64_t num_edges);
// Returns the first of n ids that is not in [0, bound), or -1.
int64_t find_bad_id(const int32_t* ids, int64_t n, int64_t bound);

// The transpose: for every source its edges in their order, so its destinations ascend. indptr
// [num_src + 1], dst and edge [num_edges]. counts [parts * num_src] is scratch; the result does not
// depend on parts, for which transpose_parts() suits the threads. A stable counting sort: two reads
// of the ids and 8 bytes an edge written at places that only a source's edges share.
int64_t transpose_parts();
void transpose(const BlockView& block, int64_t num_src, int64_t parts, int32_t* counts,
               int32_t* indptr, int32_t* dst, int32_t* edge);

}  // namespace gnnbench
