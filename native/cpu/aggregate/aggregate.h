// Sums of rows over a block in CSC, or over its transpose: aggregation and its gradient.
//
// The floor of the forward: one source row read per edge (dim values, at random), 4 bytes of id,
// and one destination row written; 2 * edges * dim operations, far below what the memory allows.
// The backward is the same with the roles exchanged, on the transposed block: scattering into
// source rows would read and write them once per edge and need either atomics (another order each
// time) or one column slice per thread (partial cache lines, no balance). A row's terms are added
// in their order by one thread, so sums keep their bits for any number of threads.
#pragma once

#include <cstdint>

#include "cpu/aggregate/block.h"
#include "cpu/aggregate/values.h"
#include "gnnbench/aggregate.h"

namespace gnnbench {

// factors [num_rows]: 1 / d of kMean (1 for a row without entries), 1 / (d + 1) of kGcn, where d is
// the sum of the row's weights or, without them, their number. Not for kSum.
template <class S>
void row_factors(const int32_t* indptr, int64_t num_rows, const S* weights, Aggregate mode,
                 S* factors);

// weights [num_entries] of the transposed block: weights[t_edge[i]] * factors[t_dst[i]]; factors
// may be null.
template <class S>
void transposed_weights(const int32_t* t_dst, const int32_t* t_edge, int64_t num_entries,
                        const S* weights, const S* factors, S* out);

// out[r] = factors[r] * (own[r] * x[r], of the first own_rows, + sum over the row's entries i of
// entry_weights[i] or column_weights[indices[i]] times x[indices[i]]). What is null counts as 1.
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
