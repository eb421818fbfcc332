// Validation of gnnlab's table and version.
#pragma once

#include "bindings/checks.h"
#include "gnnbench/gnnlab.h"

namespace gnnbench {

inline void check_versioned(const Tensor& table, int64_t version, int64_t num_nodes) {
  check_layout(table, "table", 1);
  check_dtype(table, "table", ScalarType::Long);
  if (version < 1 || version > kMaxVersion) {
    fail("version must be 1 to ", kMaxVersion, ", it is ", version);
  }
  if (num_nodes > int64_t{1} << kVersionShift) {
    fail("indptr has ", num_nodes, " nodes, the table holds ids below 2^", kVersionShift);
  }
}

// Upper bound of a table's words for a hop's nodes: `known` plus at most one per drawn edge.
inline int64_t versioned_need(int64_t known, int64_t edges, int64_t num_nodes) {
  return versioned_capacity(edges < num_nodes - known ? known + edges : num_nodes);
}

}  // namespace gnnbench
