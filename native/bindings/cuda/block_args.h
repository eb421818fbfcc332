// Arguments of the CUDA aggregation operators: blocks and values. The kernels validate offsets and
// ids by device asserts, so there is no wait.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <optional>

#include "bindings/aggregate_args.h"
#include "bindings/cuda/common.h"

namespace gnnbench::cuda {

// Calls f with a null pointer of the values' type.
template <class F>
auto by_dtype(const Tensor& values, const F& f) {
  switch (values.scalar_type()) {
    case ScalarType::Float: return f(static_cast<float*>(nullptr));
    case ScalarType::Double: return f(static_cast<double*>(nullptr));
    case ScalarType::Half: return f(static_cast<__half*>(nullptr));
    default: return f(static_cast<__nv_bfloat16*>(nullptr));
  }
}

// The same for values that are sums.
template <class F>
auto by_sum_dtype(const Tensor& values, const F& f) {
  if (values.scalar_type() == ScalarType::Float) return f(static_cast<float*>(nullptr));
  return f(static_cast<double*>(nullptr));
}

inline void check_int32(const Tensor& t, const char* name) {
  check_layout(t, name, 1);
  check_dtype(t, name, ScalarType::Int);
}

inline void check_offsets(const Tensor& t, const char* name, int64_t num_rows, const char* rows,
                          int64_t num_entries) {
  check_int32(t, name);
  if (num_rows < 0 || num_rows > INT32_MAX) {
    fail(rows, " must be 0 to ", INT32_MAX, ", it is ", num_rows);
  }
  if (t.numel() != num_rows + 1) {
    fail(name, " must hold ", rows, " + 1 = ", num_rows + 1, " offsets, it holds ", t.numel());
  }
  if (num_entries > INT32_MAX) fail("a block must stay below 2^31 sources and edges");
  if (num_rows == 0 && num_entries > 0) fail(name, " has no row, yet there are edges");
}

// Checks a block and its rows, all on one device.
inline void check_block(const Tensor& indptr, const Tensor& indices, const Tensor& rows,
                        const char* rows_name, int64_t num_dst, int64_t num_src) {
  check_int32(indices, "indices");
  check_offsets(indptr, "indptr", num_dst, "num_dst", indices.numel());
  check_cuda({{rows, rows_name}, {indptr, "indptr"}, {indices, "indices"}});
  check_sources(num_src, num_dst);
}

inline void check_transposed(const Tensor& t_indptr, const Tensor& t_dst, const Tensor& t_edge,
                             const Tensor& grad) {
  check_int32(t_dst, "t_dst");
  check_int32(t_edge, "t_edge");
  check_offsets(t_indptr, "t_indptr", t_indptr.numel() - 1, "num_src", t_dst.numel());
  check_cuda({{grad, "grad"}, {t_indptr, "t_indptr"}, {t_dst, "t_dst"}, {t_edge, "t_edge"}});
  check_sources(t_indptr.numel() - 1, grad.size(0));
  if (t_edge.numel() != t_dst.numel()) {
    fail("t_edge must hold one edge for each of t_dst, ", t_dst.numel(), ", it holds ",
         t_edge.numel());
  }
}

// Weights: [num_edges] for values [n, dim], [num_edges, heads] for values [n, heads, width].
inline void check_any_weights(const std::optional<Tensor>& weights, const Tensor& x,
                              int64_t num_edges, Aggregate mode) {
  if (x.dim() == 2) {
    check_weights(weights, x, num_edges);
  } else {
    if (!weights) fail("weights must be given where x has heads");
    check_head_weights(*weights, x, num_edges);
    if (mode != Aggregate::kSum) fail("mode must be 'sum' where x has heads");
  }
  if (weights) check_cuda({{x, "x"}, {*weights, "weights"}});
}

// Number of columns of values [n, dim] or [n, heads, width]. Kernels use 32-bit column numbers.
inline int64_t columns_of(const Tensor& values, const char* name) {
  const int64_t dim =
      values.dim() == 3 ? product_of_sizes(values.size(1), values.size(2), name) : values.size(1);
  if (dim > INT32_MAX) fail(name, " must have less than 2^31 columns, it has ", dim);
  return dim;
}

// Pointer to one value per edge, or null.
template <class S>
const S* edge_values(const std::optional<Tensor>& values) {
  return values ? data<const S>(*values) : nullptr;
}

}  // namespace gnnbench::cuda
