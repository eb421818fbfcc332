#include "bindings/cuda/row_sums.h"
#include "cuda/aggregate/edges.h"
#include "cuda/aggregate/symmetric.h"

namespace gnnbench::cuda {
namespace {

Tensor edge_add_cuda(Tensor indptr, Tensor indices, Tensor src, Tensor dst) {
  check_sums(src, "src", 2);
  check_sums(dst, "dst", 2);
  check_same_heads(src, dst);
  check_block(indptr, indices, src, "src", dst.size(0), src.size(0));
  check_cuda({{src, "src"}, {dst, "dst"}});
  const OnDevice on(src, "edge_add");
  Tensor out = on.empty({indices.numel(), src.size(1)}, src.scalar_type());
  by_sum_dtype(src, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    edge_add(on.launch(), data<const int32_t>(indptr), data<const int32_t>(indices),
             data<const S>(src), data<const S>(dst), indices.numel(), src.size(0), dst.size(0),
             src.size(1), data<S>(out));
  });
  return out;
}

// Sums the values' rows over each row: an aggregation whose sources are edges. With `edges` the
// rows belong to a transpose.
Tensor edge_sums_cuda(Tensor indptr, Tensor values, std::optional<Tensor> edges) {
  check_sums(values, "values", 2);
  const int64_t num_edges = values.size(0);
  check_offsets(indptr, "indptr", indptr.numel() - 1, "num_rows", num_edges);
  check_cuda({{values, "values"}, {indptr, "indptr"}});
  if (edges) {
    check_int32(*edges, "edges");
    check_rows(*edges, "edges", num_edges, "edges");
    check_cuda({{values, "values"}, {*edges, "edges"}});
  }
  const OnDevice on(values, "edge_sums");
  Tensor out = on.empty({indptr.numel() - 1, values.size(1)}, values.scalar_type());
  by_sum_dtype(values, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    RowSums<S> sums{};
    sums.indptr = data<const int32_t>(indptr);
    sums.columns = edges ? data<const int32_t>(*edges) : nullptr;
    sums.num_rows = indptr.numel() - 1;
    sums.num_edges = sums.num_columns = num_edges;
    sums.dim = values.size(1);
    sums.x = data<const S>(values);
    sums.out = data<S>(out);
    sums.mode = Aggregate::kSum;
    sums.heads = 1;
    if (edges) {
      spread_row_sums(on, sums);
    } else {
      row_sums(on.launch(), sums, kTunedRows);
    }
  });
  return out;
}

Tensor edge_softmax_cuda(Tensor indptr, Tensor scores) {
  check_sums(scores, "scores", 2);
  check_offsets(indptr, "indptr", indptr.numel() - 1, "num_dst", scores.size(0));
  check_cuda({{scores, "scores"}, {indptr, "indptr"}});
  const OnDevice on(scores, "edge_softmax");
  Tensor out = on.empty({scores.size(0), scores.size(1)}, scores.scalar_type());
  by_sum_dtype(scores, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    edge_softmax(on.launch(), data<const int32_t>(indptr), data<const S>(scores), scores.size(0),
                 indptr.numel() - 1, scores.size(1), data<S>(out));
  });
  return out;
}

Tensor edge_softmax_backward_cuda(Tensor indptr, Tensor softmax, Tensor grad) {
  check_sums(softmax, "softmax", 2);
  check_sums(grad, "grad", 2);
  check_rows(grad, "grad", softmax.size(0), "edges");
  check_same_heads(softmax, grad);
  check_offsets(indptr, "indptr", indptr.numel() - 1, "num_dst", softmax.size(0));
  check_cuda({{softmax, "softmax"}, {grad, "grad"}, {indptr, "indptr"}});
  const OnDevice on(softmax, "edge_softmax_backward");
  Tensor out = on.empty({softmax.size(0), softmax.size(1)}, softmax.scalar_type());
  by_sum_dtype(softmax, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    edge_softmax_backward(on.launch(), data<const int32_t>(indptr), data<const S>(softmax),
                          data<const S>(grad), softmax.size(0), indptr.numel() - 1, softmax.size(1),
                          data<S>(out));
  });
  return out;
}

Tensor edge_dots_cuda(Tensor indptr, Tensor indices, Tensor rows, Tensor x) {
  check_values(rows, "rows", 3);
  check_values(x, "x", 3);
  check_same_heads(rows, x);
  check_block(indptr, indices, x, "x", rows.size(0), x.size(0));
  check_cuda({{x, "x"}, {rows, "rows"}});
  const OnDevice on(x, "edge_dots");
  Tensor out = on.empty({indices.numel(), x.size(1)}, sum_dtype(x));
  by_dtype(x, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    edge_dots(on.launch(), data<const int32_t>(indptr), data<const int32_t>(indices),
              data<const T>(rows), data<const T>(x), indices.numel(), x.size(0), rows.size(0),
              x.size(1), x.size(2), data<Sum<T>>(out));
  });
  return out;
}

Tensor symmetric_weights_cuda(Tensor indptr, Tensor indices, int64_t num_src) {
  const int64_t num_dst = indptr.numel() - 1;
  check_block(indptr, indices, indices, "indices", num_dst, num_src);
  const OnDevice on(indices, "symmetric_weights");
  Tensor out = on.empty({indices.numel()}, ScalarType::Float);
  Tensor counts = on.empty({num_src}, ScalarType::Int);
  symmetric_weights(on.launch(), data<const int32_t>(indptr), data<const int32_t>(indices),
                    indices.numel(), num_src, num_dst, data<int32_t>(counts), data<float>(out));
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("symmetric_weights", TORCH_BOX(&symmetric_weights_cuda));
  m.impl("edge_add", TORCH_BOX(&edge_add_cuda));
  m.impl("edge_sums", TORCH_BOX(&edge_sums_cuda));
  m.impl("edge_softmax", TORCH_BOX(&edge_softmax_cuda));
  m.impl("edge_softmax_backward", TORCH_BOX(&edge_softmax_backward_cuda));
  m.impl("edge_dots", TORCH_BOX(&edge_dots_cuda));
}

}  // namespace gnnbench::cuda
