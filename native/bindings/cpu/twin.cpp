// Operators of the synthetic twins: schemas, argument checks, launch.
#include "cpu/twin.h"

#include <tuple>
#include <vector>

#include "bindings/checks.h"
#include "gnnbench/twin.h"

namespace gnnbench {

namespace {

using torch::headeronly::ScalarType;

const int64_t* int64_data(const Tensor& t, const char* name, int64_t at_least) {
  check_cpu(t, name);
  check_layout(t, name, 1);
  check_dtype(t, name, ScalarType::Long);
  if (t.numel() < at_least) fail(name, " must hold at least ", at_least, " values");
  return static_cast<const int64_t*>(t.data_ptr());
}

// Offsets from 0 to `last`, non-decreasing.
const int64_t* offsets(const Tensor& t, const char* name, int64_t last) {
  const int64_t* at = int64_data(t, name, 2);
  const int64_t count = t.numel();
  bool good = at[0] == 0 && at[count - 1] == last;
  for (int64_t i = 1; i < count; ++i) good = good && at[i - 1] <= at[i];
  if (!good) fail(name, " must rise from 0 to ", last);
  return at;
}

const int64_t* law(const Tensor& t, const char* name) {
  const int64_t* points = int64_data(t, name, twin::kLawPoints);
  bool good = points[0] >= 0;
  for (int i = 0; i < twin::kLawPoints; ++i) {
    good = good && points[i] <= int64_t{1} << 30 && (i == 0 || points[i - 1] <= points[i]);
  }
  if (!good) fail(name, " must be non-decreasing weights from 0 to 2^30");
  return points;
}

uint32_t share(int64_t value, const char* name) { return check_u32(value, name, 65537); }

uint32_t nodes(int64_t value) {
  if (value < 1) fail("num_nodes must be at least 1, it is ", value);
  return check_u32(value, "num_nodes", int64_t{1} << 31);
}

twin::NodeSpec node_spec(int64_t key, int64_t num_nodes, const Tensor& community_ptr,
                         int64_t num_classes) {
  if (num_classes < 1) fail("num_classes must be at least 1, it is ", num_classes);
  return twin::NodeSpec{static_cast<uint64_t>(key), nodes(num_nodes),
                        offsets(community_ptr, "community_ptr", num_nodes),
                        community_ptr.numel() - 1,
                        check_u32(num_classes, "num_classes", int64_t{1} << 31)};
}

Tensor empty(int64_t size, ScalarType type) { return torch::stable::empty({size}, type); }

std::tuple<Tensor, Tensor> twin_graph(int64_t key, int64_t num_nodes, int64_t num_edges,
                                      bool symmetric, Tensor community_ptr, Tensor region_ptr,
                                      Tensor in_law, Tensor out_law, int64_t in_positive,
                                      int64_t out_positive, int64_t tied, int64_t in_limit,
                                      int64_t out_limit, int64_t boost, Tensor level_edges,
                                      bool wide_ids) {
  const uint32_t n = nodes(num_nodes);
  const int64_t limit = num_nodes + 1;
  const int64_t limits = int64_t{1} << 31;
  const int64_t rows = symmetric ? num_edges / 2 : num_edges;
  if (num_edges < 0 || num_edges > num_nodes * (num_nodes - 1) || (symmetric && num_edges % 2)) {
    fail("num_edges is ", num_edges, ", which no ", symmetric ? "symmetric" : "directed",
         " graph of ", num_nodes, " nodes without parallel edges and self-loops has");
  }
  const int64_t* levels = int64_data(level_edges, "level_edges", twin::kLevels);
  int64_t sum = 0;
  bool good = true;
  for (int i = 0; i < twin::kLevels; ++i) {
    good = good && levels[i] >= 0 && levels[i] <= rows;
    sum += levels[i];
  }
  if (!good || sum != rows) fail("level_edges must sum to ", rows);
  const twin::GraphSpec spec{static_cast<uint64_t>(key),
                             n,
                             num_edges,
                             symmetric,
                             offsets(community_ptr, "community_ptr", num_nodes),
                             community_ptr.numel() - 1,
                             offsets(region_ptr, "region_ptr", community_ptr.numel() - 1),
                             region_ptr.numel() - 1,
                             law(in_law, "in_law"),
                             law(out_law, "out_law"),
                             check_u32(in_positive, "in_positive", limit),
                             check_u32(out_positive, "out_positive", limit),
                             share(tied, "tied"),
                             check_u32(in_limit, "in_limit", limits),
                             check_u32(out_limit, "out_limit", limits),
                             check_u32(boost, "boost", (int64_t{1} << 20) + 1),
                             levels};
  Tensor indptr = empty(num_nodes + 1, ScalarType::Long);
  Tensor indices = empty(num_edges, wide_ids ? ScalarType::Long : ScalarType::Int);
  auto* ptr = static_cast<int64_t*>(indptr.data_ptr());
  const int64_t made = wide_ids ? twin::graph(spec, ptr, static_cast<int64_t*>(indices.data_ptr()))
                                : twin::graph(spec, ptr, static_cast<int32_t*>(indices.data_ptr()));
  if (made != num_edges) fail("the twin has ", made, " edges instead of ", num_edges);
  return {indptr, indices};
}

Tensor twin_labels(int64_t key, int64_t num_nodes, Tensor community_ptr, int64_t num_classes,
                   int64_t noise) {
  const twin::NodeSpec spec = node_spec(key, num_nodes, community_ptr, num_classes);
  Tensor out = empty(num_nodes, ScalarType::Long);
  twin::labels(spec, share(noise, "noise"), static_cast<int64_t*>(out.data_ptr()));
  return out;
}

std::tuple<Tensor, Tensor, Tensor> twin_splits(int64_t key, int64_t num_nodes, Tensor community_ptr,
                                               int64_t home, int64_t locality, int64_t degree_bias,
                                               int64_t train, int64_t val, int64_t test) {
  const twin::NodeSpec spec = node_spec(key, num_nodes, community_ptr, 1);
  const int64_t sizes[3] = {train, val, test};
  for (const int64_t size : sizes) {
    if (size < 0 || size > num_nodes) fail("a split cannot have ", size, " nodes");
  }
  if (train + val + test > num_nodes) fail("the splits have more nodes than the graph");
  Tensor out[3] = {empty(train, ScalarType::Long), empty(val, ScalarType::Long),
                   empty(test, ScalarType::Long)};
  int64_t* const data[3] = {static_cast<int64_t*>(out[0].data_ptr()),
                            static_cast<int64_t*>(out[1].data_ptr()),
                            static_cast<int64_t*>(out[2].data_ptr())};
  twin::splits(spec, home, share(locality, "locality"), share(degree_bias, "degree_bias"), sizes,
               data);
  return {out[0], out[1], out[2]};
}

void twin_features(int64_t key, int64_t num_nodes, Tensor community_ptr, int64_t num_classes,
                   int64_t signal, int64_t first, Tensor out) {
  const twin::NodeSpec spec = node_spec(key, num_nodes, community_ptr, num_classes);
  check_cpu(out, "out");
  check_layout(out, "out", 2);
  check_dtype(out, "out", ScalarType::Float);
  const int64_t rows = out.size(0), dim = out.size(1);
  if (first < 0 || first + rows > num_nodes) {
    fail("rows ", first, " to ", first + rows, " are not among ", num_nodes, " nodes");
  }
  if (signal < 0 || signal > 65536) fail("signal must be from 0 to 65536, it is ", signal);
  if (dim == 0) fail("out must have at least one column");
  twin::features(spec, static_cast<int32_t>(signal), first, rows, dim,
                 static_cast<float*>(out.data_ptr()));
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(gnnbench, m) {
  // A graph in CSC: indptr int64 [num_nodes + 1], indices int32 or int64 [num_edges], rows
  // ascending.
  m.def(
      "twin_graph(int key, int num_nodes, int num_edges, bool symmetric, Tensor community_ptr, "
      "Tensor region_ptr, Tensor in_law, Tensor out_law, int in_positive, int out_positive, "
      "int tied, int in_limit, int out_limit, int boost, Tensor level_edges, bool wide_ids) -> "
      "(Tensor indptr, Tensor indices)");
  // Labels int64 [num_nodes].
  m.def(
      "twin_labels(int key, int num_nodes, Tensor community_ptr, int num_classes, int noise) "
      "-> Tensor");
  // Ascending ids int64 of three splits of the given sizes.
  m.def(
      "twin_splits(int key, int num_nodes, Tensor community_ptr, int home, int locality, "
      "int degree_bias, int train, int val, int test) -> (Tensor train, Tensor val, Tensor test)");
  // Rows first, first + 1, ... of the feature table into out, float32 [rows, feature_dim].
  m.def(
      "twin_features(int key, int num_nodes, Tensor community_ptr, int num_classes, int signal, "
      "int first, Tensor(a!) out) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("twin_graph", TORCH_BOX(&twin_graph));
  m.impl("twin_labels", TORCH_BOX(&twin_labels));
  m.impl("twin_splits", TORCH_BOX(&twin_splits));
  m.impl("twin_features", TORCH_BOX(&twin_features));
}

}  // namespace gnnbench
