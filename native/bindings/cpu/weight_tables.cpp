#include "cpu/pick/weight_tables.h"

#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

template <class Real>
Scratch<uint32_t> quantized(const Tensor& indptr, const Tensor& weights) {
  const Real* w = data<const Real>(weights);
  const int64_t bad = first_bad_weight(w, weights.numel());
  if (bad >= 0) {
    fail("weights holds ", w[bad], " at position ", bad, "; they must be finite and at least 0");
  }
  Scratch<uint32_t> q(weights.numel());
  quantize_weights(data<const int64_t>(indptr), indptr.numel() - 1, w, q.ptr);
  return q;
}

std::vector<Tensor> weight_tables_cpu(Tensor indptr, Tensor weights, std::string kind) {
  if (kind != "alias" && kind != "prefix") {
    fail("kind must be 'alias' or 'prefix', not '", kind, "'");
  }
  check_layout(indptr, "indptr", 1);
  check_dtype(indptr, "indptr", ScalarType::Long);
  if (indptr.numel() < 1) fail("indptr must hold num_nodes + 1 offsets, it is empty");
  check_layout(weights, "weights", 1);
  const bool single = weights.scalar_type() == ScalarType::Float;
  if (!single && weights.scalar_type() != ScalarType::Double) {
    fail("weights must be float32 or float64, it is ", dtype_name(weights.scalar_type()));
  }
  check_cpu(indptr, "indptr");
  check_cpu(weights, "weights");
  const int64_t* offsets = data<const int64_t>(indptr);
  const int64_t num_nodes = indptr.numel() - 1, num_edges = offsets[num_nodes];
  if (weights.numel() != num_edges) {
    fail("weights must have one entry per edge, ", num_edges, ", it has ", weights.numel());
  }
  const int64_t bad_row = first_bad_row(offsets, num_nodes, num_edges);
  if (bad_row >= 0) {
    fail_data("indptr is broken at node ", bad_row,
              ": offsets must not decrease and must stay within indices");
  }
  if (offsets[0] != 0) fail_data("indptr is broken at node 0: the first offset must be 0");

  const Scratch<uint32_t> q =
      single ? quantized<float>(indptr, weights) : quantized<double>(indptr, weights);
  if (kind == "prefix") {
    Tensor prefix = empty_cpu(num_edges, ScalarType::Long);
    prefix_table(offsets, num_nodes, q.ptr, data<int64_t>(prefix));
    return {prefix};
  }
  Tensor threshold = empty_cpu(num_edges, ScalarType::Int);
  Tensor alias = empty_cpu(num_edges, ScalarType::Int);
  alias_table(offsets, num_nodes, q.ptr, data<uint32_t>(threshold), data<uint32_t>(alias));
  return {threshold, alias};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("weight_tables", TORCH_BOX(&weight_tables_cpu));
}

}  // namespace gnnbench
