// Validated arguments of the twin operators, for both devices: integers on the host.
#pragma once

#include "bindings/checks.h"
#include "cpu/twin/twin.h"
#include "gnnbench/twin.h"

namespace gnnbench {

struct HostInts {
  const int64_t* data;
  int64_t count;
};

// Offsets from 0 to `last`, non-decreasing.
inline const int64_t* check_offsets(HostInts t, const char* name, int64_t last) {
  if (t.count < 2) fail(name, " must hold at least 2 values");
  bool good = t.data[0] == 0 && t.data[t.count - 1] == last;
  for (int64_t i = 1; i < t.count; ++i) good = good && t.data[i - 1] <= t.data[i];
  if (!good) fail(name, " must rise from 0 to ", last);
  return t.data;
}

inline const int64_t* check_law(HostInts t, const char* name) {
  if (t.count < twin::kLawPoints) {
    fail(name, " must hold at least ", twin::kLawPoints, " values");
  }
  bool good = t.data[0] >= 0;
  for (int i = 0; i < twin::kLawPoints; ++i) {
    good = good && t.data[i] <= int64_t{1} << 30 && (i == 0 || t.data[i - 1] <= t.data[i]);
  }
  if (!good) fail(name, " must be non-decreasing weights from 0 to 2^30");
  return t.data;
}

inline uint32_t check_share(int64_t value, const char* name) {
  return check_u32(value, name, 65537);
}

inline uint32_t check_nodes(int64_t value) {
  if (value < 1) fail("num_nodes must be at least 1, it is ", value);
  return check_u32(value, "num_nodes", int64_t{1} << 31);
}

inline twin::NodeSpec node_spec(int64_t key, int64_t num_nodes, HostInts community_ptr,
                                int64_t num_classes) {
  if (num_classes < 1) fail("num_classes must be at least 1, it is ", num_classes);
  return twin::NodeSpec{static_cast<uint64_t>(key), check_nodes(num_nodes),
                        check_offsets(community_ptr, "community_ptr", num_nodes),
                        community_ptr.count - 1,
                        check_u32(num_classes, "num_classes", int64_t{1} << 31)};
}

inline twin::GraphSpec graph_spec(int64_t key, int64_t num_nodes, int64_t num_edges, bool symmetric,
                                  HostInts community_ptr, HostInts region_ptr, HostInts in_law,
                                  HostInts out_law, int64_t in_positive, int64_t out_positive,
                                  int64_t tied, int64_t in_limit, int64_t out_limit, int64_t boost,
                                  HostInts level_edges) {
  const uint32_t n = check_nodes(num_nodes);
  const int64_t limit = num_nodes + 1;
  const int64_t limits = int64_t{1} << 31;
  const int64_t rows = symmetric ? num_edges / 2 : num_edges;
  if (num_edges < 0 || num_edges > num_nodes * (num_nodes - 1) || (symmetric && num_edges % 2)) {
    fail("num_edges is ", num_edges, ", which is impossible for a ",
         symmetric ? "symmetric" : "directed", " graph of ", num_nodes,
         " nodes without parallel edges and self-loops");
  }
  if (level_edges.count < twin::kLevels) {
    fail("level_edges must hold at least ", twin::kLevels, " values");
  }
  int64_t sum = 0;
  bool good = true;
  for (int i = 0; i < twin::kLevels; ++i) {
    good = good && level_edges.data[i] >= 0 && level_edges.data[i] <= rows - sum;
    if (good) sum += level_edges.data[i];
  }
  if (!good || sum != rows) fail("level_edges must sum to ", rows);
  return twin::GraphSpec{static_cast<uint64_t>(key),
                         n,
                         num_edges,
                         symmetric,
                         check_offsets(community_ptr, "community_ptr", num_nodes),
                         community_ptr.count - 1,
                         check_offsets(region_ptr, "region_ptr", community_ptr.count - 1),
                         region_ptr.count - 1,
                         check_law(in_law, "in_law"),
                         check_law(out_law, "out_law"),
                         check_u32(in_positive, "in_positive", limit),
                         check_u32(out_positive, "out_positive", limit),
                         check_share(tied, "tied"),
                         check_u32(in_limit, "in_limit", limits),
                         check_u32(out_limit, "out_limit", limits),
                         check_u32(boost, "boost", (int64_t{1} << 20) + 1),
                         level_edges.data};
}

inline void check_splits(int64_t num_nodes, const int64_t (&sizes)[3]) {
  for (const int64_t size : sizes) {
    if (size < 0 || size > num_nodes) fail("a split cannot have ", size, " nodes");
  }
  if (sizes[0] + sizes[1] + sizes[2] > num_nodes) {
    fail("the splits have more nodes than the graph");
  }
}

// Arguments of the feature operator: out float32 [rows, dim] holds rows first, first + 1, ... of
// the table.
inline void check_features(const Tensor& out, int64_t num_nodes, int64_t first, int64_t signal) {
  check_layout(out, "out", 2);
  check_dtype(out, "out", ScalarType::Float);
  const int64_t rows = out.size(0);
  check_range_of_rows(first, rows, num_nodes);
  if (signal < 0 || signal > 65536) fail("signal must be from 0 to 65536, it is ", signal);
  if (out.size(1) == 0) fail("out must have at least one column");
}

inline void check_made(int64_t made, int64_t wanted) {
  if (made != wanted) fail("the twin has ", made, " edges instead of ", wanted);
}

}  // namespace gnnbench
