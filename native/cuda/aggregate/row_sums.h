// Arguments of every kernel that sums rows of a block, in both directions.
#pragma once

#include "cuda/aggregate/sum_of.h"
#include "gnnbench/aggregate.h"

namespace gnnbench::cuda {

// Sums over rows, out [num_rows, dim] from x [num_columns, dim]. `T` is float, double, __half or
// __nv_bfloat16.
template <class T>
struct RowSums {
  const int32_t* indptr;   // [num_rows + 1]
  const int32_t* columns;  // [num_edges], or null: the index of each edge
  int64_t num_rows, num_edges, num_columns, dim;
  const T* x;
  T* out;
  Aggregate mode;

  // Weights of edges [edges, heads]; null means 1. With several heads the mode is kSum, a row has
  // `heads` parts of dim / heads columns, and each part has its own edge weights.
  const Sum<T>* weights;
  int64_t heads;

  // For the backward, null in the forward. The block's offsets [num_dst + 1]; rows are then sources
  // and columns destinations. The edge of each entry of `columns` [num_edges], read if there are
  // weights. Sums of each destination's weights [num_dst], required if there are weights and the
  // mode is not kSum.
  const int32_t* block_indptr;
  const int32_t* edges;
  const Sum<T>* totals;
  int64_t num_dst;
};

}  // namespace gnnbench::cuda
