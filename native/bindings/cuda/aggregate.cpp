#include "cuda/aggregate/aggregate.h"

#include "bindings/aggregate_args.h"
#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

void check_block(const Tensor& indptr, const Tensor& indices, const Tensor& rows,
                 const char* rows_name) {
  check_layout(indptr, "indptr", 1);
  check_dtype(indptr, "indptr", ScalarType::Int);
  if (indptr.numel() < 1) fail("indptr must hold num_dst + 1 offsets, it is empty");
  check_layout(indices, "indices", 1);
  check_dtype(indices, "indices", ScalarType::Int);
  check_layout(rows, rows_name, 2);
  if (rows.scalar_type() != ScalarType::Float && rows.scalar_type() != ScalarType::Double) {
    fail(rows_name, " must be float32 or float64, it is ", dtype_name(rows.scalar_type()));
  }
  check_cuda({{indptr, "indptr"}, {indices, "indices"}, {rows, rows_name}});
  if (indices.numel() > INT32_MAX) fail("a block must stay below 2^31 sources and edges");
}

// What is inside the block is checked by the kernels, which fail a device assert: no waiting.
void check_sources(int64_t num_src, int64_t num_dst) {
  if (num_src < num_dst) {
    fail("a block of ", num_dst, " destinations needs as many sources at least, it has ", num_src);
  }
  if (num_src > INT32_MAX) fail("a block must stay below 2^31 sources and edges");
}

template <class Real>
Tensor run_forward(const Tensor& indptr, const Tensor& indices, const Tensor& x, int64_t num_dst,
                   Aggregate mode) {
  const OnDevice on(x, "aggregate");
  Tensor out = on.empty({num_dst, x.size(1)}, x.scalar_type());
  aggregate<Real>(on.launch(), data<const int32_t>(indptr), data<const int32_t>(indices),
                  data<const Real>(x), indices.numel(), x.size(0), num_dst, x.size(1), mode,
                  data<Real>(out));
  return out;
}

Tensor aggregate_cuda(Tensor indptr, Tensor indices, Tensor x, int64_t num_dst, std::string mode) {
  check_block(indptr, indices, x, "x");
  if (num_dst < 0 || indptr.numel() != num_dst + 1) {
    fail("indptr must hold num_dst + 1 = ", num_dst + 1, " offsets, it holds ", indptr.numel());
  }
  const Aggregate how = aggregate_from_name(mode);
  check_sources(x.size(0), num_dst);
  return x.scalar_type() == ScalarType::Float
             ? run_forward<float>(indptr, indices, x, num_dst, how)
             : run_forward<double>(indptr, indices, x, num_dst, how);
}

template <class Real>
Tensor run_backward(const Tensor& indptr, const Tensor& indices, const Tensor& grad,
                    int64_t num_src, Aggregate mode) {
  const OnDevice on(grad, "aggregate_backward");
  const int64_t num_edges = indices.numel();
  Tensor out = on.empty({num_src, grad.size(1)}, grad.scalar_type());
  const size_t cub_bytes = aggregate_backward_scratch_bytes(on.launch(), num_edges, num_src);
  Scratch memory;
  const size_t sources = memory.add<int32_t>(num_edges);
  const size_t rows = memory.add<int32_t>(num_edges);
  const size_t sorted = memory.add<int32_t>(num_edges);
  const size_t offsets = memory.add<int32_t>(num_src + 1);
  const size_t long_rows = memory.add<int32_t>(num_edges / kLongRow + 1);
  const size_t weights = memory.add<Real>(indptr.numel());
  const size_t cub = memory.add<char>(static_cast<int64_t>(cub_bytes));
  memory.allocate(on);
  const TransposeScratch scratch{memory.at<int32_t>(sources),   memory.at<int32_t>(rows),
                                 memory.at<int32_t>(sorted),    memory.at<int32_t>(offsets),
                                 memory.at<int32_t>(long_rows), memory.at<Real>(weights),
                                 memory.at<char>(cub),          cub_bytes};
  aggregate_backward<Real>(on.launch(), data<const int32_t>(indptr), data<const int32_t>(indices),
                           data<const Real>(grad), num_edges, num_src, indptr.numel() - 1,
                           grad.size(1), mode, scratch, data<Real>(out));
  return out;
}

Tensor aggregate_backward_cuda(Tensor indptr, Tensor indices, Tensor grad, int64_t num_src,
                               std::string mode) {
  check_block(indptr, indices, grad, "grad");
  if (grad.size(0) != indptr.numel() - 1) {
    fail("grad must have one row for each of the ", indptr.numel() - 1, " destinations, it has ",
         grad.size(0));
  }
  const Aggregate how = aggregate_from_name(mode);
  check_sources(num_src, indptr.numel() - 1);
  return grad.scalar_type() == ScalarType::Float
             ? run_backward<float>(indptr, indices, grad, num_src, how)
             : run_backward<double>(indptr, indices, grad, num_src, how);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("aggregate", TORCH_BOX(&aggregate_cuda));
  m.impl("aggregate_backward", TORCH_BOX(&aggregate_backward_cuda));
}

}  // namespace gnnbench::cuda
