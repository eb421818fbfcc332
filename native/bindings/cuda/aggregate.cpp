#include "cuda/aggregate/aggregate.h"

#include <tuple>

#include "bindings/cuda/row_sums.h"
#include "cuda/aggregate/transpose.h"

namespace gnnbench::cuda {
namespace {

std::tuple<Tensor, Tensor, Tensor> transpose_cuda(Tensor indptr, Tensor indices, int64_t num_src) {
  const int64_t num_dst = indptr.numel() - 1, num_edges = indices.numel();
  check_block(indptr, indices, indices, "indices", num_dst, num_src);
  const OnDevice on(indices, "transpose");
  Tensor offsets = on.empty({num_src + 1}, ScalarType::Int);
  Tensor dst = on.empty({num_edges}, ScalarType::Int);
  Tensor edge = on.empty({num_edges}, ScalarType::Int);
  const size_t scan_bytes = transpose_scan_bytes(on.launch(), num_src);
  Scratch memory;
  const size_t ranks = memory.add<int32_t>(num_edges);
  const size_t placed = memory.add<uint64_t>(num_edges);
  const size_t merged = memory.add<uint64_t>(num_edges);
  const size_t scan = memory.add<char>(static_cast<int64_t>(scan_bytes));
  memory.allocate(on);
  transpose(on.launch(), data<const int32_t>(indptr), data<const int32_t>(indices), num_edges,
            num_src, num_dst,
            {memory.at<int32_t>(ranks), memory.at<uint64_t>(placed), memory.at<uint64_t>(merged),
             memory.at<char>(scan), scan_bytes},
            data<int32_t>(offsets), data<int32_t>(dst), data<int32_t>(edge));
  return {offsets, dst, edge};
}

Tensor aggregate_cuda(Tensor indptr, Tensor indices, Tensor x, int64_t num_dst, std::string mode,
                      std::optional<Tensor> weights) {
  check_values(x, "x", 2);
  return sum_forward("aggregate", indptr, indices, x, num_dst, aggregate_from_name(mode), weights,
                     [](const Launch& launch, const auto& s) {
                       aggregate(launch, s.indptr, s.columns, s.x, s.weights, s.num_edges,
                                 s.num_columns, s.num_rows, s.dim, s.mode, s.out);
                     });
}

Tensor aggregate_tuned_cuda(Tensor indptr, Tensor indices, Tensor x, int64_t num_dst,
                            std::string mode, std::optional<Tensor> weights, int64_t rows) {
  check_values(x, "x", 2);
  if (rows < 1 || rows > kTunedMostRows) {
    fail("rows must be 1 to ", kTunedMostRows, ", it is ", rows);
  }
  return sum_forward("aggregate_tuned", indptr, indices, x, num_dst, aggregate_from_name(mode),
                     weights, [rows](const Launch& launch, const auto& sums) {
                       row_sums(launch, sums, static_cast<int>(rows));
                     });
}

Tensor aggregate_transposed_cuda(Tensor indptr, Tensor t_indptr, Tensor t_dst, Tensor t_edge,
                                 Tensor grad, std::string mode, std::optional<Tensor> weights) {
  check_values(grad, "grad", 2);
  return sum_backward("aggregate_transposed", &indptr, t_indptr, t_dst, t_edge, grad,
                      aggregate_from_name(mode), weights,
                      [](const OnDevice& on, const auto& sums) { spread_row_sums(on, sums); });
}

Tensor aggregate_heads_cuda(Tensor indptr, Tensor indices, Tensor x, Tensor weights,
                            int64_t num_dst) {
  check_values(x, "x", 3);
  return sum_forward(
      "aggregate_heads", indptr, indices, x, num_dst, Aggregate::kSum, weights,
      [](const Launch& launch, const auto& sums) { row_sums(launch, sums, kTunedRows); });
}

Tensor aggregate_heads_transposed_cuda(Tensor t_indptr, Tensor t_dst, Tensor t_edge, Tensor grad,
                                       Tensor weights) {
  check_values(grad, "grad", 3);
  return sum_backward("aggregate_heads_transposed", nullptr, t_indptr, t_dst, t_edge, grad,
                      Aggregate::kSum, weights,
                      [](const OnDevice& on, const auto& sums) { spread_row_sums(on, sums); });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("transpose", TORCH_BOX(&transpose_cuda));
  m.impl("aggregate", TORCH_BOX(&aggregate_cuda));
  m.impl("aggregate_tuned", TORCH_BOX(&aggregate_tuned_cuda));
  m.impl("aggregate_transposed", TORCH_BOX(&aggregate_transposed_cuda));
  m.impl("aggregate_heads", TORCH_BOX(&aggregate_heads_cuda));
  m.impl("aggregate_heads_transposed", TORCH_BOX(&aggregate_heads_transposed_cuda));
}

}  // namespace gnnbench::cuda
