#include "bindings/cuda/row_sums.h"
#include "cuda/aggregate/memory_aware.h"
#include "cuda/aggregate/memory_aware_warp.h"

namespace gnnbench::cuda {
namespace {

// Limits of a block's threads and shared memory, and of a grid's column slices.
void check_shape(const Tensor& x, int64_t targets, int64_t dims) {
  if (targets < 1 || dims < 1 || targets > 1024 || dims > 1024 || targets * dims > 1024) {
    fail("targets times dims must be 1 to 1024 threads, they are ", targets, " and ", dims);
  }
  if ((dims & (dims - 1)) != 0) fail("dims must be a power of two, it is ", dims);
  const int64_t heads = x.dim() == 3 ? x.size(1) : 1;
  const int64_t dim = columns_of(x, "x");
  if (dim == 0) return;
  if (dim > 65535 * dims) fail("x has ", dim, " columns; use more dims than ", dims);
  const int64_t bytes =
      memory_aware_shared_bytes(x.scalar_type() == ScalarType::Double ? 8 : 4, heads, dim,
                                static_cast<int>(targets), static_cast<int>(dims));
  if (bytes > 48 << 10) {
    fail("a block would need ", bytes, " bytes of shared memory, it has ", 48 << 10,
         "; use fewer targets or dims");
  }
}

Tensor forward(Tensor indptr, Tensor indices, Tensor x, int64_t num_dst, std::string mode,
               std::optional<Tensor> weights, int64_t targets, int64_t dims) {
  check_values(x, "x", x.dim() == 3 ? 3 : 2);
  check_shape(x, targets, dims);
  return sum_forward(
      "aggregate_memory_aware", indptr, indices, x, num_dst, aggregate_from_name(mode), weights,
      [=](const Launch& launch, const auto& sums) {
        memory_aware(launch, sums, static_cast<int>(targets), static_cast<int>(dims));
      });
}

Tensor backward(Tensor indptr, Tensor t_indptr, Tensor t_dst, Tensor t_edge, Tensor grad,
                std::string mode, std::optional<Tensor> weights, int64_t targets, int64_t dims) {
  check_values(grad, "grad", grad.dim() == 3 ? 3 : 2);
  check_shape(grad, targets, dims);
  return sum_backward(
      "aggregate_memory_aware_transposed", &indptr, t_indptr, t_dst, t_edge, grad,
      aggregate_from_name(mode), weights, [=](const OnDevice& on, const auto& sums) {
        memory_aware(on.launch(), sums, static_cast<int>(targets), static_cast<int>(dims));
      });
}

// The gradient added to the rows of sources by atomics.
Tensor scattered(Tensor indptr, Tensor indices, Tensor grad, int64_t num_src, std::string mode_name,
                 std::optional<Tensor> weights, int64_t targets, int64_t dims) {
  check_values(grad, "grad", grad.dim() == 3 ? 3 : 2);
  check_shape(grad, targets, dims);
  const int64_t num_dst = grad.size(0), num_edges = indices.numel();
  const Aggregate mode = aggregate_from_name(mode_name);
  check_block(indptr, indices, grad, "grad", num_dst, num_src);
  check_any_weights(weights, grad, num_edges, mode);
  const bool heads = grad.dim() == 3;
  const int64_t dim = columns_of(grad, "grad");
  const OnDevice on(grad, "aggregate_memory_aware_scattered");
  const ScalarType type =
      grad.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  Tensor out = heads ? on.empty({num_src, grad.size(1), grad.size(2)}, type)
                     : on.empty({num_src, dim}, type);
  const bool has_totals = weights.has_value() && mode != Aggregate::kSum;
  Scratch memory;
  const size_t at = memory.add<double>(num_dst);
  if (has_totals) memory.allocate(on);
  by_dtype(grad, [&](auto* of) {
    using T = std::remove_pointer_t<decltype(of)>;
    using S = Sum<T>;
    GNNBENCH_CUDA_CALL(on.launch(), cudaMemsetAsync(out.data_ptr(), 0, num_src * dim * sizeof(S),
                                                    on.launch().stream));
    RowSums<T> sums{};
    sums.indptr = data<const int32_t>(indptr);
    sums.columns = data<const int32_t>(indices);
    sums.num_rows = num_dst;
    sums.num_edges = num_edges;
    sums.num_columns = num_src;
    sums.dim = dim;
    sums.x = data<const T>(grad);
    sums.mode = mode;
    sums.weights = edge_values<S>(weights);
    sums.heads = heads ? grad.size(1) : 1;
    if (has_totals) {
      sums.totals = memory.at<S>(at);
      sum_weights(on.launch(), sums.indptr, num_dst, num_edges, sums.weights, memory.at<S>(at));
    }
    memory_aware_scatter(on.launch(), sums, data<S>(out), static_cast<int>(targets),
                         static_cast<int>(dims));
  });
  return out;
}

WarpShape warp_shape(const Tensor& x, int64_t warps, int64_t columns, int64_t rows) {
  if (warps < 1 || warps > kWarpMostWarps) {
    fail("warps must be 1 to ", kWarpMostWarps, ", it is ", warps);
  }
  if (columns != 64 && columns != 128) fail("columns must be 64 or 128, it is ", columns);
  if (rows < 1 || rows > kWarpMostRows) {
    fail("rows must be 1 to ", kWarpMostRows, ", it is ", rows);
  }
  // A grid has at most 65535 slices of 64 columns.
  if (const int64_t dim = columns_of(x, "x"); dim > 65535 * 64) {
    fail("x must have at most ", 65535 * 64, " columns, it has ", dim);
  }
  return {static_cast<int>(warps), static_cast<int>(columns), static_cast<int>(rows)};
}

Tensor warp_forward(Tensor indptr, Tensor indices, Tensor x, int64_t num_dst, std::string mode,
                    std::optional<Tensor> weights, int64_t warps, int64_t columns, int64_t rows) {
  check_values(x, "x", x.dim() == 3 ? 3 : 2);
  const WarpShape shape = warp_shape(x, warps, columns, rows);
  return sum_forward(
      "aggregate_memory_aware_warp", indptr, indices, x, num_dst, aggregate_from_name(mode),
      weights,
      [&](const Launch& launch, const auto& sums) { memory_aware_warp(launch, sums, shape); });
}

template <class T>
void sum_by_warps(const OnDevice& on, const RowSums<T>& sums, WarpShape shape) {
  const int64_t pieces = warp_pieces(sums.num_edges), long_rows = warp_long_rows(sums.num_edges);
  Scratch memory;
  const size_t counts = memory.add<int32_t>(2);
  const size_t row = memory.add<int32_t>(pieces);
  const size_t begin = memory.add<int32_t>(pieces);
  const size_t long_row = memory.add<int32_t>(long_rows);
  const size_t first_piece = memory.add<int32_t>(long_rows);
  const size_t kept = memory.add<Sum<T>>(pieces * sums.dim);
  memory.allocate(on);
  GNNBENCH_CUDA_CALL(on.launch(), cudaMemsetAsync(memory.at<int32_t>(counts), 0,
                                                  2 * sizeof(int32_t), on.launch().stream));
  memory_aware_warp_transposed(
      on.launch(), sums, shape,
      WarpPieces<T>{memory.at<int32_t>(counts), memory.at<int32_t>(row), memory.at<int32_t>(begin),
                    memory.at<int32_t>(long_row), memory.at<int32_t>(first_piece),
                    memory.at<Sum<T>>(kept),
                    static_cast<int32_t>(warp_piece_edges(sums.num_edges))});
}

Tensor warp_backward(Tensor indptr, Tensor t_indptr, Tensor t_dst, Tensor t_edge, Tensor grad,
                     std::string mode, std::optional<Tensor> weights, int64_t warps,
                     int64_t columns, int64_t rows) {
  check_values(grad, "grad", grad.dim() == 3 ? 3 : 2);
  const WarpShape shape = warp_shape(grad, warps, columns, rows);
  return sum_backward("aggregate_memory_aware_warp_transposed", &indptr, t_indptr, t_dst, t_edge,
                      grad, aggregate_from_name(mode), weights,
                      [&](const OnDevice& on, const auto& sums) { sum_by_warps(on, sums, shape); });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("aggregate_memory_aware", TORCH_BOX(&forward));
  m.impl("aggregate_memory_aware_transposed", TORCH_BOX(&backward));
  m.impl("aggregate_memory_aware_scattered", TORCH_BOX(&scattered));
  m.impl("aggregate_memory_aware_warp", TORCH_BOX(&warp_forward));
  m.impl("aggregate_memory_aware_warp_transposed", TORCH_BOX(&warp_backward));
}

}  // namespace gnnbench::cuda
