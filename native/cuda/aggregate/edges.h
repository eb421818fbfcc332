// Values of a block's edges, head by head: what attention is made of. Sums over rows of them are
// tuned.h's.
#pragma once

#include "cuda/aggregate/sum_of.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// A row of more than kLongEdges edges is worked on by all threads of the block that it falls to.
// Broken offsets and indices out of range fail a device assert. `Real` is float or double.
constexpr int64_t kLongEdges = 128;

// out [num_edges, heads]: src [num_src, heads] at the source + dst [num_rows, heads].
template <class Real>
void edge_add(Launch launch, const int32_t* indptr, const int32_t* indices, const Real* src,
              const Real* dst, int64_t num_edges, int64_t num_src, int64_t num_rows, int64_t heads,
              Real* out);

// Softmax over each row's edges, and its gradient from that of its result; [num_edges, heads]. A
// thread a row and head goes over its edges twice, the second time in L1.
template <class Real>
void edge_softmax(Launch launch, const int32_t* indptr, const Real* scores, int64_t num_edges,
                  int64_t num_rows, int64_t heads, Real* out);
template <class Real>
void edge_softmax_backward(Launch launch, const int32_t* indptr, const Real* softmax,
                           const Real* grad, int64_t num_edges, int64_t num_rows, int64_t heads,
                           Real* out);

// SDDMM: out [num_edges, heads] = the product of rows [num_rows, heads, width] at the edge's row
// and x [num_src, heads, width] at its source. Some lanes own a row's head and take four edges at
// once; their parts are added in an order that the width alone decides.
//
// Bytes, float32, width * heads = dim: 4 * dim * (sources + rows) from memory, 4 * dim * edges
// through L2 and 4 * heads * edges written: less than the sum of rows by the rows written.
template <class T>
void edge_dots(Launch launch, const int32_t* indptr, const int32_t* indices, const T* rows,
               const T* x, int64_t num_edges, int64_t num_src, int64_t num_rows, int64_t heads,
               int64_t width, Sum<T>* out);

}  // namespace gnnbench::cuda
