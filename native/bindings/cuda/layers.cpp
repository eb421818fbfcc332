#include <tuple>

#include "bindings/cuda/block_args.h"
#include "bindings/layer_args.h"
#include "cuda/layers/bias_relu.h"
#include "cuda/layers/dropout.h"

namespace gnnbench::cuda {
namespace {

constexpr int64_t kMaxDropoutColumns =
    int64_t{65535} * 128;  // the grid's y times a block's columns

void bias_relu_cuda(Tensor x, Tensor bias) {
  check_biased(x, bias);
  check_cuda({{x, "x"}, {bias, "bias"}});
  if (x.numel() == 0) return;
  const OnDevice on(x, "bias_relu_");
  by_sum_dtype(x, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    bias_relu(on.launch(), data<const S>(bias), x.size(0), x.size(1), data<S>(x));
  });
}

std::tuple<Tensor, Tensor> bias_relu_backward_cuda(Tensor grad, Tensor y) {
  check_back(grad, y);
  check_cuda({{y, "y"}, {grad, "grad"}});
  const OnDevice on(y, "bias_relu_backward");
  const int64_t dim = y.size(1), rows = y.numel() == 0 ? 0 : y.size(0);
  Tensor grad_x = on.empty({y.size(0), dim}, y.scalar_type());
  Tensor grad_bias = on.empty({dim}, y.scalar_type());
  Tensor parts = on.empty({bias_relu_parts(rows), dim}, y.scalar_type());
  by_sum_dtype(y, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    bias_relu_backward(on.launch(), data<const S>(grad), data<const S>(y), rows, dim,
                       data<S>(parts), data<S>(grad_x), data<S>(grad_bias));
  });
  return {grad_x, grad_bias};
}

Tensor dropout_cuda(Tensor x, Tensor nodes, int64_t key, int64_t batch, int64_t layer, double p,
                    std::optional<Tensor> place) {
  const DropoutArgs args = check_dropout(x, nodes, key, batch, layer, p, place);
  check_cuda({{x, "x"}, {nodes, "nodes"}});
  if (place) check_cuda({{x, "x"}, {*place, "place"}});
  if (x.size(1) > kMaxDropoutColumns) {
    fail("x must have at most ", kMaxDropoutColumns, " columns on a GPU, it has ", x.size(1));
  }
  const OnDevice on(x, "dropout");
  Tensor out = on.empty({x.size(0), x.size(1)}, x.scalar_type());
  if (x.numel() == 0) return out;
  by_sum_dtype(x, [&](auto* type) {
    by_id_dtype(nodes, [&](auto* id) {
      using S = std::remove_pointer_t<decltype(type)>;
      using Id = std::remove_pointer_t<decltype(id)>;
      dropout(on.launch(), data<const S>(x), data<const Id>(nodes), x.size(0), x.size(1), args.key,
              args.batch, args.place, args.layer, args.threshold, static_cast<S>(args.scale),
              data<S>(out));
    });
  });
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("bias_relu_", TORCH_BOX(&bias_relu_cuda));
  m.impl("bias_relu_backward", TORCH_BOX(&bias_relu_backward_cuda));
  m.impl("dropout", TORCH_BOX(&dropout_cuda));
}

}  // namespace gnnbench::cuda
