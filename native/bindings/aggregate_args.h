// Arguments of the aggregation operators, for both devices.
#pragma once

#include <optional>

#include "bindings/checks.h"
#include "gnnbench/aggregate.h"

namespace gnnbench {

inline Aggregate aggregate_from_name(const std::string& name) {
  if (name == "sum") return Aggregate::kSum;
  if (name == "mean") return Aggregate::kMean;
  if (name == "gcn") return Aggregate::kGcn;
  fail("mode must be 'sum', 'mean' or 'gcn', not '", name, "'");
}

// Values of float64 are summed in float64, all others in float32.
inline void check_values(const Tensor& t, const char* name, int64_t dim) {
  check_layout(t, name, dim);
  switch (t.scalar_type()) {
    case ScalarType::Float:
    case ScalarType::Double:
    case ScalarType::Half:
    case ScalarType::BFloat16: return;
    default:
      fail(name, " must be float16, bfloat16, float32 or float64, it is ",
           dtype_name(t.scalar_type()));
  }
}

inline ScalarType sum_dtype(const Tensor& values) {
  return values.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

// Sums: float32 or float64.
inline void check_sums(const Tensor& t, const char* name, int64_t dim) {
  check_layout(t, name, dim);
  if (t.scalar_type() != ScalarType::Float && t.scalar_type() != ScalarType::Double) {
    fail(name, " must be float32 or float64, it is ", dtype_name(t.scalar_type()));
  }
}

inline void check_rows(const Tensor& t, const char* name, int64_t rows, const char* what) {
  if (t.size(0) != rows) {
    fail(name, " must have one row for each of the ", rows, " ", what, ", it has ", t.size(0));
  }
}

inline void check_weights(const std::optional<Tensor>& weights, const Tensor& x,
                          int64_t num_edges) {
  if (!weights) return;
  check_layout(*weights, "weights", 1);
  check_dtype(*weights, "weights", sum_dtype(x));
  check_rows(*weights, "weights", num_edges, "edges");
}

// Checks that both have the same dtype, number of heads and columns per head.
inline void check_same_heads(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type()) {
    fail("both sides must be of one dtype, they are ", dtype_name(a.scalar_type()), " and ",
         dtype_name(b.scalar_type()));
  }
  for (int64_t d = 1; d < a.dim(); ++d) {
    if (a.size(d) != b.size(d)) {
      fail("both sides must have rows of one shape; dimension ", d, " is ", a.size(d), " and ",
           b.size(d));
    }
  }
}

inline void check_head_weights(const Tensor& weights, const Tensor& x, int64_t num_edges) {
  check_layout(weights, "weights", 2);
  check_dtype(weights, "weights", sum_dtype(x));
  check_rows(weights, "weights", num_edges, "edges");
  if (weights.size(1) != x.size(1)) {
    fail("weights must have one column for each of the ", x.size(1), " heads, it has ",
         weights.size(1));
  }
}

inline void check_group(int64_t group) {
  if (group < 1 || group > INT32_MAX) fail("group must be 1 or more entries, it is ", group);
}

// Row numbers are int32.
inline void check_num_rows(int64_t num_rows) {
  if (num_rows < 0 || num_rows > INT32_MAX) {
    fail("num_rows must be 0 to ", INT32_MAX, ", it is ", num_rows);
  }
}

inline void check_dim_workers(int64_t workers) {
  if (workers < 1 || workers > 32) fail("dim_workers must be 1 to 32 threads, it is ", workers);
}

inline void check_sources(int64_t num_src, int64_t num_dst) {
  if (num_src < num_dst) {
    fail("a block of ", num_dst, " destinations needs at least as many sources, it has ", num_src);
  }
  if (num_src > INT32_MAX) fail("a block must stay below 2^31 sources and edges");
}

}  // namespace gnnbench
