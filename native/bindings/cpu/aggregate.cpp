#include "cpu/aggregate/aggregate.h"

#include <tuple>

#include "bindings/cpu/block_args.h"

namespace gnnbench {
namespace {

void check_on_cpu(const std::optional<Tensor>& weights) {
  if (weights) check_cpu(*weights, "weights");
}

std::tuple<Tensor, Tensor, Tensor> transpose_cpu(Tensor indptr, Tensor indices, int64_t num_src) {
  const BlockView block = check_block(indptr, indices, indptr.numel() - 1, num_src);
  Tensor offsets = empty_cpu(num_src + 1, ScalarType::Int);
  Tensor dst = empty_cpu(block.num_edges, ScalarType::Int);
  Tensor edge = empty_cpu(block.num_edges, ScalarType::Int);
  const int64_t parts = transpose_parts();
  const Scratch<int32_t> counts(parts * num_src);
  transpose(block, num_src, parts, counts.ptr, data<int32_t>(offsets), data<int32_t>(dst),
            data<int32_t>(edge));
  return {offsets, dst, edge};
}

Tensor aggregate_cpu(Tensor indptr, Tensor indices, Tensor x, int64_t num_dst, std::string mode,
                     std::optional<Tensor> weights) {
  check_values(x, "x", 2);
  check_cpu(x, "x");
  const Aggregate m = aggregate_from_name(mode);
  const BlockView block = check_block(indptr, indices, num_dst, x.size(0));
  check_weights(weights, x, block.num_edges);
  check_on_cpu(weights);
  Tensor out = empty_rows({num_dst, x.size(1)}, x.scalar_type());
  if (out.numel() == 0) return out;
  by_dtype(x, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    using S = Sum<T>;
    const Scratch<S> factors(m == Aggregate::kSum ? 0 : num_dst);
    const S* w = edge_values<S>(weights);
    if (m != Aggregate::kSum) row_factors(block.indptr, num_dst, w, m, factors.ptr);
    RowSums<T> sums{block, data<const T>(x), x.size(1)};
    sums.entry_weights = w;
    sums.own_rows = m == Aggregate::kGcn ? num_dst : 0;
    sums.factors = m == Aggregate::kSum ? nullptr : factors.ptr;
    sums.out = data<T>(out);
    sum_rows(sums);
  });
  return out;
}

Tensor aggregate_transposed_cpu(Tensor indptr, Tensor t_indptr, Tensor t_dst, Tensor t_edge,
                                Tensor grad, std::string mode, std::optional<Tensor> weights) {
  check_values(grad, "grad", 2);
  check_cpu(grad, "grad");
  const Aggregate m = aggregate_from_name(mode);
  const int64_t num_dst = grad.size(0), num_edges = t_dst.numel();
  check_offsets(indptr, "indptr", num_dst, "num_dst", num_edges);
  const BlockView transposed = check_transposed(t_indptr, t_dst, t_edge, num_dst);
  check_weights(weights, grad, num_edges);
  check_on_cpu(weights);
  Tensor out = empty_rows({transposed.num_rows, grad.size(1)}, grad.scalar_type());
  if (out.numel() == 0) return out;
  by_dtype(grad, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    using S = Sum<T>;
    const bool plain = m == Aggregate::kSum;
    const Scratch<S> factors(plain ? 0 : num_dst), entries(weights ? num_edges : 0);
    const S* w = edge_values<S>(weights);
    if (!plain) row_factors(data<const int32_t>(indptr), num_dst, w, m, factors.ptr);
    const S* scale = plain ? nullptr : factors.ptr;
    RowSums<T> sums{transposed, data<const T>(grad), grad.size(1)};
    if (w) {
      transposed_weights(transposed.indices, data<const int32_t>(t_edge), num_edges, w, scale,
                         entries.ptr);
      sums.entry_weights = entries.ptr;
    } else {
      sums.column_weights = scale;
    }
    sums.own_rows = m == Aggregate::kGcn ? num_dst : 0;
    sums.own = scale;
    sums.out = data<T>(out);
    sum_rows(sums);
  });
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("transpose", TORCH_BOX(&transpose_cpu));
  m.impl("aggregate", TORCH_BOX(&aggregate_cpu));
  m.impl("aggregate_transposed", TORCH_BOX(&aggregate_transposed_cpu));
}

}  // namespace gnnbench
