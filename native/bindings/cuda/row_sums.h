// The two directions of an aggregation, for any launcher that sums rows.
#pragma once

#include "bindings/cuda/block_args.h"
#include "cuda/aggregate/spread_rows.h"
#include "cuda/aggregate/tuned.h"

namespace gnnbench::cuda {

// Default number of rows per group of lanes.
constexpr int64_t kTunedRows = 4;

// Sums the rows of a transpose.
template <class T>
void spread_row_sums(const OnDevice& on, const RowSums<T>& sums) {
  const int64_t chunks = num_chunks(sums.num_edges, sums.num_rows);
  if (chunks <= 1) return spread_row_sums(on.launch(), sums, RowPieces<T>{});
  Scratch memory;
  const size_t begun = memory.add<Sum<T>>(chunks * sums.dim);
  const size_t reached = memory.add<Sum<T>>(chunks * sums.dim);
  const size_t rows = memory.add<int32_t>(chunks);
  memory.allocate(on);
  spread_row_sums(
      on.launch(), sums,
      RowPieces<T>{memory.at<Sum<T>>(begun), memory.at<Sum<T>>(reached), memory.at<int32_t>(rows)});
}

// Sums of each destination's weights, out [num_dst].
template <class S>
void sum_weights(const Launch& launch, const int32_t* indptr, int64_t num_dst, int64_t num_edges,
                 const S* weights, S* out) {
  RowSums<S> each{};
  each.indptr = indptr;
  each.num_rows = num_dst;
  each.num_edges = each.num_columns = num_edges;
  each.dim = each.heads = 1;
  each.x = weights;
  each.out = out;
  each.mode = Aggregate::kSum;
  row_sums(launch, each, kTunedRows);
}

// x [num_src, dim] or [num_src, heads, width]. Calls `sum` with the launch and RowSums<T>.
template <class Launcher>
Tensor sum_forward(const char* op, const Tensor& indptr, const Tensor& indices, const Tensor& x,
                   int64_t num_dst, Aggregate mode, const std::optional<Tensor>& weights,
                   const Launcher& sum) {
  check_values(x, "x", x.dim() == 3 ? 3 : 2);
  check_block(indptr, indices, x, "x", num_dst, x.size(0));
  check_any_weights(weights, x, indices.numel(), mode);
  const bool heads = x.dim() == 3;
  const int64_t dim = columns_of(x, "x");
  const OnDevice on(x, op);
  Tensor out = heads ? on.empty({num_dst, x.size(1), x.size(2)}, x.scalar_type())
                     : on.empty({num_dst, dim}, x.scalar_type());
  by_dtype(x, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    RowSums<T> sums{};
    sums.indptr = data<const int32_t>(indptr);
    sums.columns = data<const int32_t>(indices);
    sums.num_rows = num_dst;
    sums.num_edges = indices.numel();
    sums.num_columns = x.size(0);
    sums.dim = dim;
    sums.x = data<const T>(x);
    sums.out = data<T>(out);
    sums.mode = mode;
    sums.weights = edge_values<Sum<T>>(weights);
    sums.heads = heads ? x.size(1) : 1;
    sum(on.launch(), sums);
  });
  return out;
}

// indptr: the block's offsets, required unless the mode is kSum. Calls `sum` with OnDevice and
// RowSums<T>.
template <class Launcher>
Tensor sum_backward(const char* op, const Tensor* indptr, const Tensor& t_indptr,
                    const Tensor& t_dst, const Tensor& t_edge, const Tensor& grad, Aggregate mode,
                    const std::optional<Tensor>& weights, const Launcher& sum) {
  check_values(grad, "grad", grad.dim() == 3 ? 3 : 2);
  check_transposed(t_indptr, t_dst, t_edge, grad);
  check_any_weights(weights, grad, t_dst.numel(), mode);
  const int64_t num_dst = grad.size(0), num_src = t_indptr.numel() - 1;
  if (indptr != nullptr) {
    check_offsets(*indptr, "indptr", num_dst, "num_dst", t_dst.numel());
    check_cuda({{grad, "grad"}, {*indptr, "indptr"}});
  }
  const bool heads = grad.dim() == 3;
  const int64_t dim = columns_of(grad, "grad");
  const OnDevice on(grad, op);
  Tensor out = heads ? on.empty({num_src, grad.size(1), grad.size(2)}, grad.scalar_type())
                     : on.empty({num_src, dim}, grad.scalar_type());
  Scratch memory;
  const bool totals = weights.has_value() && mode != Aggregate::kSum;
  const size_t at = memory.add<double>(num_dst);
  if (totals) memory.allocate(on);
  by_dtype(grad, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    using S = Sum<T>;
    RowSums<T> sums{};
    sums.indptr = data<const int32_t>(t_indptr);
    sums.columns = data<const int32_t>(t_dst);
    sums.num_rows = num_src;
    sums.num_edges = t_dst.numel();
    sums.num_columns = num_dst;
    sums.dim = dim;
    sums.x = data<const T>(grad);
    sums.out = data<T>(out);
    sums.mode = mode;
    sums.weights = edge_values<S>(weights);
    sums.heads = heads ? grad.size(1) : 1;
    sums.block_indptr = indptr == nullptr ? nullptr : data<const int32_t>(*indptr);
    sums.edges = data<const int32_t>(t_edge);
    sums.num_dst = num_dst;
    if (totals) {
      sum_weights(on.launch(), sums.block_indptr, num_dst, t_dst.numel(), sums.weights,
                  memory.at<S>(at));
      sums.totals = memory.at<S>(at);
    }
    sum(on, sums);
  });
  return out;
}

}  // namespace gnnbench::cuda
