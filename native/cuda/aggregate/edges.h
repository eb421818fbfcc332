// Operators on the edges of a block, per head, for attention. tuned.h has the sums of rows weighted
// by edges.
#pragma once

#include "cuda/aggregate/sum_of.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// All threads of a block process a row with more than kLongEdges edges. Invalid offsets and indices
// out of range fail a device assert. `Real` is float or double.
constexpr int64_t kLongEdges = 128;

// out [num_edges, heads]: src [num_src, heads] at the source + dst [num_rows, heads].
template <class Real>
void edge_add(Launch launch, const int32_t* indptr, const int32_t* indices, const Real* src,
              const Real* dst, int64_t num_edges, int64_t num_src, int64_t num_rows, int64_t heads,
              Real* out);

// Softmax over each row's edges, and its gradient from the gradient of the result; [num_edges,
// heads]. One thread per row and head reads its edges twice, the second time from L1.
template <class Real>
void edge_softmax(Launch launch, const int32_t* indptr, const Real* scores, int64_t num_edges,
                  int64_t num_rows, int64_t heads, Real* out);
template <class Real>
void edge_softmax_backward(Launch launch, const int32_t* indptr, const Real* softmax,
                           const Real* grad, int64_t num_edges, int64_t num_rows, int64_t heads,
                           Real* out);

// SDDMM: out [num_edges, heads] = the product of rows [num_rows, heads, width] at the edge's row
// and x [num_src, heads, width] at its source. A few lanes process one head of a row, four edges at
// once. Their parts are added in an order that depends on the width only.
//
// Bytes for float32 with width * heads = dim: 4 * dim * (sources + rows) from memory, 4 * dim *
// edges through L2 and 4 * heads * edges written. This is the traffic of the sum of rows without
// the rows written.
template <class T>
void edge_dots(Launch launch, const int32_t* indptr, const int32_t* indices, const T* rows,
               const T* x, int64_t num_edges, int64_t num_src, int64_t num_rows, int64_t heads,
               int64_t width, Sum<T>* out);

}  // namespace gnnbench::cuda
