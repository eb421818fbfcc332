// Sums of rows over a block in CSC, or over its transpose: aggregation and its gradient.
//
// Lower bound of the forward: per edge one source row read at random (dim values) and a 4-byte id,
// per destination one row written. Its 2 * edges * dim operations take far less time than the
// memory traffic.
// The backward is the same with the roles exchanged, on the transposed block. Scattering into
// source rows would read and write them once per edge and need either atomics (a different order
// each time) or one column slice per thread (partial cache lines, no load balance). One thread adds
// the terms of a row in order, so sums are bitwise equal for any number of threads.
#pragma once

#include <cstdint>

#include "cpu/aggregate/block.h"
#include "cpu/aggregate/values.h"
#include "gnnbench/aggregate.h"

namespace gnnbench {

// factors [num_rows]: 1 / d for kMean (1 for a row without entries), 1 / (d + 1) for kGcn. d is the
// sum of the row's weights or, without weights, the number of its entries. Not for kSum.
template <class S>
void row_factors(const int32_t* indptr, int64_t num_rows, const S* weights, Aggregate mode,
                 S* factors);

// weights [num_entries] of the transposed block: weights[t_edge[i]] * factors[t_dst[i]]; factors
// may be null.
template <class S>
void transposed_weights(const int32_t* t_dst, const int32_t* t_edge, int64_t num_entries,
                        const S* weights, const S* factors, S* out);

// out[r] = factors[r] * (own[r] * x[r] for the first own_rows, + the sum over the row's entries i
// of entry_weights[i] or column_weights[indices[i]] times x[indices[i]]). Null factors or weights
// are 1.
template <class T>
struct RowSums {
  BlockView block;
  const T* x;
  int64_t dim;
  const Sum<T>* entry_weights = nullptr;
  const Sum<T>* column_weights = nullptr;
  int64_t own_rows = 0;
  const Sum<T>* own = nullptr;
  const Sum<T>* factors = nullptr;
  T* out = nullptr;
};

// T is float, double, Half or BFloat16.
template <class T>
void sum_rows(const RowSums<T>& sums);

}  // namespace gnnbench
