// Aggregation over a block in CSC, forward and backward, and its transpose.
//
// The floor of the forward: one source row read per edge (dim values, at random) and one
// destination row written; 2 * edges * dim flops, far below what the memory allows. The backward is
// the same with the roles exchanged, on the transposed block: scattering into source rows would
// read and write them once per edge and need either atomics (another order each time) or one
// column slice per thread (partial cache lines, no balance). The transpose is a stable counting
// sort of 4-byte entries, so sums keep their order for any number of threads.
#pragma once

#include <cstdint>

#include "gnnbench/aggregate.h"

namespace gnnbench {

// Rows of a block (or of its transpose), offsets and ids int32.
struct BlockView {
  const int32_t* indptr;
  const int32_t* indices;
  int64_t num_rows;
  int64_t num_edges;
};

// Returns the first row whose offsets are wrong, or -1.
int64_t find_bad_row(const BlockView& block);
// Returns the first edge whose id is not in [0, bound), or -1.
int64_t find_bad_id(const BlockView& block, int64_t bound);

// out [num_rows, dim] from x [num_src, dim]; self of row v is row v of x.
template <class T>
void aggregate(const BlockView& block, const T* x, int64_t dim, Aggregate mode, T* out);

// indptr [num_src + 1] and indices [num_edges] of the transpose: for every source its destinations
// in ascending order. counts [parts * num_src] is scratch; the result does not depend on parts, for
// which transpose_parts() suits the threads.
int64_t transpose_parts();
void transpose(const BlockView& block, int64_t num_src, int64_t parts, int32_t* counts,
               int32_t* indptr, int32_t* indices);

// grad_x [num_src, dim] from grad [num_dst, dim]. scale [num_dst] is scratch.
template <class T>
void aggregate_backward(const BlockView& block, const BlockView& transposed, const T* grad,
                        int64_t dim, Aggregate mode, T* scale, T* grad_x);

}  // namespace gnnbench
