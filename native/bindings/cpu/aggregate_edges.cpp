#include "bindings/cpu/block_args.h"
#include "cpu/aggregate/edges.h"
#include "cpu/aggregate/symmetric.h"

namespace gnnbench {
namespace {

void check_edges(const Tensor& t, const char* name, int64_t num_edges) {
  check_sums(t, name, 2);
  check_cpu(t, name);
  check_rows(t, name, num_edges, "edges");
}

Tensor edge_add_cpu(Tensor indptr, Tensor indices, Tensor src, Tensor dst) {
  check_sums(src, "src", 2);
  check_cpu(src, "src");
  check_sums(dst, "dst", 2);
  check_cpu(dst, "dst");
  check_same_heads(src, dst);
  const BlockView block = check_block(indptr, indices, dst.size(0), src.size(0));
  const int64_t heads = src.size(1);
  Tensor out = empty_rows({block.num_edges, heads}, src.scalar_type());
  if (out.numel() == 0) return out;
  by_sum_dtype(src, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    edge_add(block, heads, data<const S>(src), data<const S>(dst), data<S>(out));
  });
  return out;
}

Tensor edge_sums_cpu(Tensor indptr, Tensor values, std::optional<Tensor> edges) {
  check_sums(values, "values", 2);
  check_cpu(values, "values");
  const int64_t num_rows = indptr.numel() - 1, heads = values.size(1);
  check_offsets(indptr, "indptr", num_rows, "num_rows", values.size(0));
  if (edges) {
    check_local_ids(*edges, "edges", values.size(0), "edges");
    check_rows(*edges, "edges", values.size(0), "edges");
  }
  Tensor out = empty_rows({num_rows, heads}, values.scalar_type());
  if (out.numel() == 0) return out;
  by_sum_dtype(values, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    edge_sums(data<const int32_t>(indptr), num_rows, heads, data<const S>(values),
              edges ? data<const int32_t>(*edges) : nullptr, data<S>(out));
  });
  return out;
}

Tensor edge_softmax_cpu(Tensor indptr, Tensor scores) {
  check_sums(scores, "scores", 2);
  check_cpu(scores, "scores");
  const int64_t num_rows = indptr.numel() - 1, heads = scores.size(1);
  check_offsets(indptr, "indptr", num_rows, "num_dst", scores.size(0));
  Tensor out = empty_rows({scores.size(0), heads}, scores.scalar_type());
  if (out.numel() == 0) return out;
  by_sum_dtype(scores, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    edge_softmax(data<const int32_t>(indptr), num_rows, heads, data<const S>(scores), data<S>(out));
  });
  return out;
}

Tensor edge_softmax_backward_cpu(Tensor indptr, Tensor softmax, Tensor grad) {
  check_sums(softmax, "softmax", 2);
  check_cpu(softmax, "softmax");
  check_edges(grad, "grad", softmax.size(0));
  check_same_heads(softmax, grad);
  const int64_t num_rows = indptr.numel() - 1, heads = softmax.size(1);
  check_offsets(indptr, "indptr", num_rows, "num_dst", softmax.size(0));
  Tensor out = empty_rows({softmax.size(0), heads}, softmax.scalar_type());
  if (out.numel() == 0) return out;
  by_sum_dtype(softmax, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    edge_softmax_backward(data<const int32_t>(indptr), num_rows, heads, data<const S>(softmax),
                          data<const S>(grad), data<S>(out));
  });
  return out;
}

Tensor edge_dots_cpu(Tensor indptr, Tensor indices, Tensor rows, Tensor x) {
  check_values(rows, "rows", 3);
  check_cpu(rows, "rows");
  check_values(x, "x", 3);
  check_cpu(x, "x");
  check_same_heads(rows, x);
  const BlockView block = check_block(indptr, indices, rows.size(0), x.size(0));
  const int64_t heads = x.size(1), width = x.size(2);
  Tensor out = empty_rows({block.num_edges, heads}, sum_dtype(x));
  if (out.numel() == 0) return out;
  by_dtype(x, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    edge_dots(block, heads, width, data<const T>(rows), data<const T>(x), data<Sum<T>>(out));
  });
  return out;
}

Tensor run_heads(const BlockView& block, const Tensor* edges, const Tensor& x,
                 const Tensor& weights) {
  const int64_t heads = x.size(1), width = x.size(2);
  Tensor out = empty_rows({block.num_rows, heads, width}, x.scalar_type());
  if (out.numel() == 0) return out;
  by_dtype(x, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    sum_heads(HeadSums<T>{block, edges ? data<const int32_t>(*edges) : nullptr, data<const T>(x),
                          heads, width, data<const Sum<T>>(weights), data<T>(out)});
  });
  return out;
}

Tensor aggregate_heads_cpu(Tensor indptr, Tensor indices, Tensor x, Tensor weights,
                           int64_t num_dst) {
  check_values(x, "x", 3);
  check_cpu(x, "x");
  const BlockView block = check_block(indptr, indices, num_dst, x.size(0));
  check_head_weights(weights, x, block.num_edges);
  check_cpu(weights, "weights");
  return run_heads(block, nullptr, x, weights);
}

Tensor aggregate_heads_transposed_cpu(Tensor t_indptr, Tensor t_dst, Tensor t_edge, Tensor grad,
                                      Tensor weights) {
  check_values(grad, "grad", 3);
  check_cpu(grad, "grad");
  const BlockView block = check_transposed(t_indptr, t_dst, t_edge, grad.size(0));
  check_head_weights(weights, grad, block.num_edges);
  check_cpu(weights, "weights");
  return run_heads(block, &t_edge, grad, weights);
}

Tensor symmetric_weights_cpu(Tensor indptr, Tensor indices, int64_t num_src) {
  const BlockView block = check_block(indptr, indices, indptr.numel() - 1, num_src);
  Tensor out = empty_cpu(block.num_edges, ScalarType::Float);
  const Scratch<int32_t> counts(num_src);
  symmetric_weights(block, num_src, counts.ptr, data<float>(out));
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("symmetric_weights", TORCH_BOX(&symmetric_weights_cpu));
  m.impl("edge_add", TORCH_BOX(&edge_add_cpu));
  m.impl("edge_sums", TORCH_BOX(&edge_sums_cpu));
  m.impl("edge_softmax", TORCH_BOX(&edge_softmax_cpu));
  m.impl("edge_softmax_backward", TORCH_BOX(&edge_softmax_backward_cpu));
  m.impl("edge_dots", TORCH_BOX(&edge_dots_cpu));
  m.impl("aggregate_heads", TORCH_BOX(&aggregate_heads_cpu));
  m.impl("aggregate_heads_transposed", TORCH_BOX(&aggregate_heads_transposed_cpu));
}

}  // namespace gnnbench
