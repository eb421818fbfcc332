// Operators on a block's edges, with one value per edge and head: scores, softmax, products, and
// sums of rows weighted by edges.
//
// Lower bound: the softmax reads and writes its edges once, 8 bytes per head each, with one
// exponential per value. The products and the weighted sums read one source row per edge, as the
// aggregation does. One thread adds the terms of a row in order.
#pragma once

#include <cstdint>

#include "cpu/aggregate/block.h"
#include "cpu/aggregate/values.h"

namespace gnnbench {

// out [num_edges, heads]: sum of a source's row and a destination's row.
template <class S>
void edge_add(const BlockView& block, int64_t heads, const S* src, const S* dst, S* out);

// out [num_rows, heads]: sum of each row's values [num_entries, heads]. For a transposed block,
// `edges` gives the positions of the values.
template <class S>
void edge_sums(const int32_t* indptr, int64_t num_rows, int64_t heads, const S* values,
               const int32_t* edges, S* out);

// Softmax over the edges of each destination and head; scores and out [num_edges, heads].
template <class S>
void edge_softmax(const int32_t* indptr, int64_t num_rows, int64_t heads, const S* scores, S* out);

// softmax * (grad - sum of softmax * grad over the destination's edges).
template <class S>
void edge_softmax_backward(const int32_t* indptr, int64_t num_rows, int64_t heads, const S* softmax,
                           const S* grad, S* out);

// out [num_edges, heads]: products of a destination's row with a source's, rows [num_dst, heads,
// width] and x [num_src, heads, width] (SDDMM).
template <class T>
void edge_dots(const BlockView& block, int64_t heads, int64_t width, const T* rows, const T* x,
               Sum<T>* out);

// out [num_rows, heads, width]: for each head h the sum over a row's entries i of weights[i, h]
// times x[indices[i], h]. For a transposed block, `edges` gives the positions of the weights.
template <class T>
struct HeadSums {
  BlockView block;
  const int32_t* edges;  // or null
  const T* x;
  int64_t heads, width;
  const Sum<T>* weights;
  T* out;
};

template <class T>
void sum_heads(const HeadSums<T>& sums);

}  // namespace gnnbench
