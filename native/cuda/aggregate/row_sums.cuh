// Factors of edges and rows, as defined in row_sums.h.
#pragma once

#include "cuda/aggregate/pack.cuh"
#include "cuda/aggregate/row_sums.h"
#include "cuda/common/device_assert.h"

namespace gnnbench::cuda {

// In the backward: the divisor of destination v's sum in the forward.
template <class T>
__device__ __forceinline__ Sum<T> divisor_of(const RowSums<T>& a, int64_t v) {
  using Real = Sum<T>;
  const Real total =
      a.totals != nullptr
          ? __ldg(a.totals + v)
          : static_cast<Real>(__ldg(a.block_indptr + v + 1) - __ldg(a.block_indptr + v));
  return a.mode == Aggregate::kGcn ? total + Real(1) : total;
}

template <class T>
__device__ __forceinline__ int32_t column_of(const RowSums<T>& a, int64_t e) {
  return a.columns != nullptr ? __ldg(a.columns + e) : static_cast<int32_t>(e);
}

// Index of the weight of the rows' entry e.
template <class T>
__device__ __forceinline__ int32_t edge_of(const RowSums<T>& a, int64_t e) {
  return a.edges != nullptr && a.weights != nullptr ? __ldg(a.edges + e) : static_cast<int32_t>(e);
}

// Factor of an edge's term for one head. `column` is within the block.
template <class T>
__device__ __forceinline__ Sum<T> weight_of(const RowSums<T>& a, int32_t edge, int32_t column) {
  Sum<T> weight = a.weights == nullptr ? Sum<T>(1) : __ldg(a.weights + edge);
  if (a.block_indptr != nullptr && a.mode != Aggregate::kSum) weight /= divisor_of(a, column);
  return weight;
}

// Whether a row adds its own term, and the factor of that term.
template <class T>
__device__ __forceinline__ bool with_self(const RowSums<T>& a, int64_t row) {
  return a.mode == Aggregate::kGcn && (a.block_indptr == nullptr || row < a.num_dst);
}
template <class T>
__device__ __forceinline__ Sum<T> self_weight(const RowSums<T>& a, int64_t row) {
  return a.block_indptr != nullptr ? Sum<T>(1) / divisor_of(a, row) : Sum<T>(1);
}

// Final factor of a row's sum, its own term included. `total` is the sum of the row's weights.
template <class T>
__device__ __forceinline__ Sum<T> row_factor(const RowSums<T>& a, int32_t degree, Sum<T> total) {
  using Real = Sum<T>;
  if (a.block_indptr != nullptr || a.mode == Aggregate::kSum) return Real(1);
  if (a.mode == Aggregate::kGcn) return Real(1) / (total + Real(1));
  return degree > 0 ? Real(1) / total : Real(1);
}

}  // namespace gnnbench::cuda
