// Operators of the synthetic twins: schemas, argument checks, launch.
#include <tuple>

#include "bindings/cpu/memory.h"
#include "bindings/twin_spec.h"

namespace gnnbench {

namespace {

using torch::headeronly::ScalarType;

HostInts ints(const Tensor& t, const char* name) {
  check_cpu(t, name);
  check_layout(t, name, 1);
  check_dtype(t, name, ScalarType::Long);
  return {static_cast<const int64_t*>(t.data_ptr()), t.numel()};
}

std::tuple<Tensor, Tensor> twin_graph(int64_t key, int64_t num_nodes, int64_t num_edges,
                                      bool symmetric, Tensor community_ptr, Tensor region_ptr,
                                      Tensor in_law, Tensor out_law, int64_t in_positive,
                                      int64_t out_positive, int64_t tied, int64_t in_limit,
                                      int64_t out_limit, int64_t boost, Tensor level_edges,
                                      bool wide_ids) {
  const twin::GraphSpec spec = graph_spec(
      key, num_nodes, num_edges, symmetric, ints(community_ptr, "community_ptr"),
      ints(region_ptr, "region_ptr"), ints(in_law, "in_law"), ints(out_law, "out_law"), in_positive,
      out_positive, tied, in_limit, out_limit, boost, ints(level_edges, "level_edges"));
  Tensor indptr = empty_cpu(num_nodes + 1, ScalarType::Long);
  Tensor indices = empty_cpu(num_edges, wide_ids ? ScalarType::Long : ScalarType::Int);
  auto* ptr = static_cast<int64_t*>(indptr.data_ptr());
  const int64_t made = wide_ids ? twin::graph(spec, ptr, static_cast<int64_t*>(indices.data_ptr()))
                                : twin::graph(spec, ptr, static_cast<int32_t*>(indices.data_ptr()));
  check_made(made, num_edges);
  return {indptr, indices};
}

Tensor twin_labels(int64_t key, int64_t num_nodes, Tensor community_ptr, int64_t num_classes,
                   int64_t noise) {
  const twin::NodeSpec spec =
      node_spec(key, num_nodes, ints(community_ptr, "community_ptr"), num_classes);
  Tensor out = empty_cpu(num_nodes, ScalarType::Long);
  twin::labels(spec, check_share(noise, "noise"), static_cast<int64_t*>(out.data_ptr()));
  return out;
}

std::tuple<Tensor, Tensor, Tensor> twin_splits(int64_t key, int64_t num_nodes, Tensor community_ptr,
                                               int64_t home, int64_t locality, int64_t degree_bias,
                                               int64_t train, int64_t val, int64_t test) {
  const twin::NodeSpec spec = node_spec(key, num_nodes, ints(community_ptr, "community_ptr"), 1);
  const int64_t sizes[3] = {train, val, test};
  check_splits(num_nodes, sizes);
  Tensor out[3] = {empty_cpu(train, ScalarType::Long), empty_cpu(val, ScalarType::Long),
                   empty_cpu(test, ScalarType::Long)};
  int64_t* const data[3] = {static_cast<int64_t*>(out[0].data_ptr()),
                            static_cast<int64_t*>(out[1].data_ptr()),
                            static_cast<int64_t*>(out[2].data_ptr())};
  twin::splits(spec, home, check_share(locality, "locality"),
               check_share(degree_bias, "degree_bias"), sizes, data);
  return {out[0], out[1], out[2]};
}

void twin_features(int64_t key, int64_t num_nodes, Tensor community_ptr, int64_t num_classes,
                   int64_t signal, int64_t first, Tensor out) {
  const twin::NodeSpec spec =
      node_spec(key, num_nodes, ints(community_ptr, "community_ptr"), num_classes);
  check_cpu(out, "out");
  check_features(out, num_nodes, first, signal);
  twin::features(spec, static_cast<int32_t>(signal), first, out.size(0), out.size(1),
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
  // Writes rows first, first + 1, ... of the feature table to out, float32 [rows, feature_dim].
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
