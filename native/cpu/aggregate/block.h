// A block (or its transpose) as the kernels read it, and its validation.
#pragma once

#include <cstdint>

namespace gnnbench {

// Rows of a block (or of its transpose); offsets and ids are int32.
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

// Transposes a block: the edges of each source in their order, so that its destinations ascend.
// indptr [num_src + 1], dst and edge [num_edges]. counts [parts * num_src] is scratch. The result
// does not depend on parts; transpose_parts() suits the number of threads. A stable counting sort:
// it reads the ids twice and writes 8 bytes per edge, at scattered positions.
int64_t transpose_parts();
void transpose(const BlockView& block, int64_t num_src, int64_t parts, int32_t* counts,
               int32_t* indptr, int32_t* dst, int32_t* edge);

}  // namespace gnnbench
