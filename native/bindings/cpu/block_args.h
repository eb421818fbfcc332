// Arguments of the CPU aggregation operators: blocks and values.
#pragma once

#include <optional>

#include "bindings/aggregate_args.h"
#include "bindings/cpu/memory.h"
#include "cpu/aggregate/block.h"
#include "cpu/aggregate/values.h"

namespace gnnbench {

// Calls f with a null pointer of the values' type.
template <class F>
void by_dtype(const Tensor& values, const F& f) {
  switch (values.scalar_type()) {
    case ScalarType::Float: return f(static_cast<float*>(nullptr));
    case ScalarType::Double: return f(static_cast<double*>(nullptr));
    case ScalarType::Half: return f(static_cast<Half*>(nullptr));
    default: return f(static_cast<BFloat16*>(nullptr));
  }
}

// The same for values that are sums.
template <class F>
void by_sum_dtype(const Tensor& values, const F& f) {
  if (values.scalar_type() == ScalarType::Float) return f(static_cast<float*>(nullptr));
  return f(static_cast<double*>(nullptr));
}

inline void check_offsets(const Tensor& t, const char* name, int64_t num_rows, const char* rows,
                          int64_t num_entries) {
  check_layout(t, name, 1);
  check_dtype(t, name, ScalarType::Int);
  check_cpu(t, name);
  if (num_rows < 0 || num_rows > INT32_MAX) {
    fail(rows, " must be 0 to ", INT32_MAX, ", it is ", num_rows);
  }
  if (t.numel() != num_rows + 1) {
    fail(name, " must hold ", rows, " + 1 = ", num_rows + 1, " offsets, it holds ", t.numel());
  }
  if (num_entries > INT32_MAX) fail("a block must stay below 2^31 sources and edges");
  const int64_t row = find_bad_row(data<const int32_t>(t), num_rows, num_entries);
  if (row >= 0) {
    fail(name, " must start at 0, never decrease and end at the number of edges; row ", row,
         " is wrong");
  }
}

inline void check_local_ids(const Tensor& t, const char* name, int64_t bound, const char* what) {
  check_layout(t, name, 1);
  check_dtype(t, name, ScalarType::Int);
  check_cpu(t, name);
  const int64_t at = find_bad_id(data<const int32_t>(t), t.numel(), bound);
  if (at >= 0) {
    fail(name, " holds ", data<const int32_t>(t)[at], " at position ", at, ", the block has the ",
         what, " 0 to ", bound - 1);
  }
}

inline BlockView check_block(const Tensor& indptr, const Tensor& indices, int64_t num_dst,
                             int64_t num_src) {
  check_layout(indices, "indices", 1);
  check_offsets(indptr, "indptr", num_dst, "num_dst", indices.numel());
  check_sources(num_src, num_dst);
  check_local_ids(indices, "indices", num_src, "sources");
  return {data<const int32_t>(indptr), data<const int32_t>(indices), num_dst, indices.numel()};
}

// Checks a block's transpose. `edge` is validated only if it is read.
inline BlockView check_transposed(const Tensor& indptr, const Tensor& dst, const Tensor& edge,
                                  int64_t num_dst) {
  check_layout(dst, "t_dst", 1);
  check_offsets(indptr, "t_indptr", indptr.numel() - 1, "num_src", dst.numel());
  check_sources(indptr.numel() - 1, num_dst);
  check_local_ids(dst, "t_dst", num_dst, "destinations");
  if (edge.numel() != dst.numel()) {
    fail("t_edge must hold one edge for each of t_dst, ", dst.numel(), ", it holds ", edge.numel());
  }
  check_local_ids(edge, "t_edge", dst.numel(), "edges");
  return {data<const int32_t>(indptr), data<const int32_t>(dst), indptr.numel() - 1, dst.numel()};
}

// Pointer to one value per edge, or null.
template <class S>
const S* edge_values(const std::optional<Tensor>& values) {
  return values ? data<const S>(*values) : nullptr;
}

}  // namespace gnnbench
