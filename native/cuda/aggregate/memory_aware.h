// FastGL's Memory-Aware aggregation (section 4.2 and Fig. 7), as published.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// A block has X `targets` (rows) and Y `dims` of them, with one thread each; the paper uses X = 8,
// Y = 32. Partial sums [X, Y], and the ids and weights of the targets' edges, are in shared memory.
// A thread reads its column of a source's row from global memory, the weight and its partial sum
// from shared memory, and writes the sum back. Up to 32 threads of a target are a team within one
// warp. A team stages ids and weights for itself, so that only its lanes wait for each other and no
// barrier of the block is needed. The backward (Eq. 5) is the same over the transpose.
//
// The paper keeps all weights of a target in shared memory. Here it holds `tile` of them at a time,
// so that rows can have any length.
//
// It is slower than memory_aware_warp.h because it saves traffic that does not occur. Compilers
// keep a partial sum of a single thread in a register, and a weight shared by all columns comes
// from L1. The paper's baseline moves both through global memory at every edge. The sum is bound by
// reading the sources' rows, here 4 bytes per thread. Each edge also costs an additional load and
// store of shared memory. Each slice of Y columns reads indptr, ids and weights again.
//
// `dims` must be a power of two.
template <class T>
void memory_aware(Launch launch, const RowSums<T>& sums, int targets, int dims);

// The backward as in the authors' public code: a target adds its gradient, weighted, to the rows of
// its sources by atomics, in nondeterministic order. The block's rows and the gradient x
// [num_rows, dim]; `block_indptr` and `edges` null, `totals` as in a backward. `out` [num_columns,
// dim] must be zero; its dtype is that of the sums, because atomics would round a narrower one at
// every edge.
template <class T>
void memory_aware_scatter(Launch launch, const RowSums<T>& sums, Sum<T>* out, int targets,
                          int dims);

// Bytes of shared memory per block.
int64_t memory_aware_shared_bytes(int64_t real_bytes, int64_t heads, int64_t dim, int targets,
                                  int dims);

}  // namespace gnnbench::cuda
