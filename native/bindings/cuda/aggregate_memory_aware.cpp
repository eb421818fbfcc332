#include "bindings/cuda/row_sums.h"
#include "cuda/aggregate/memory_aware.h"

namespace gnnbench::cuda {
namespace {

// Limits of a block's threads and shared memory, and of a grid's column slices.
void check_shape(const Tensor& x, int64_t targets, int64_t dims) {
  if (targets < 1 || dims < 1 || targets > 1024 || dims > 1024 || targets * dims > 1024) {
    fail("targets times dims must be 1 to 1024 threads, they are ", targets, " and ", dims);
  }
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

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("aggregate_memory_aware", TORCH_BOX(&forward));
  m.impl("aggregate_memory_aware_transposed", TORCH_BOX(&backward));
}

}  // namespace gnnbench::cuda
