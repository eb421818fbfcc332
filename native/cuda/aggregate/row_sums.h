// What every kernel that sums rows of a block is given, in both directions.
#pragma once

#include "cuda/aggregate/sum_of.h"
#include "gnnbench/aggregate.h"

namespace gnnbench::cuda {

// Sums over rows, out [num_rows, dim] from x [num_columns, dim]. `T` is float, double, __half or
// __nv_bfloat16.
template <class T>
struct RowSums {
  const int32_t* indptr;   // [num_rows + 1]
  const int32_t* columns;  // [num_edges], or null: each edge's own number
  int64_t num_rows, num_edges, num_columns, dim;
  const T* x;
  T* out;
  Aggregate mode;

  // Weights of edges [edges, heads], or null: each 1. Above one head the mode is kSum, a row has
  // `heads` parts of dim / heads columns, and each edge weighs as its part says.
  const Sum<T>* weights;
  int64_t heads;

  // Of the backward, null in the forward: the block's offsets [num_dst + 1], then rows are sources
  // and columns destinations; the edge that each of `columns` is [num_edges], read where there are
  // weights; and sums of each destination's weights [num_dst], needed where there are weights and
  // the mode is not kSum.
  const int32_t* block_indptr;
  const int32_t* edges;
  const Sum<T>* totals;
  int64_t num_dst;
};

}  // namespace gnnbench::cuda
