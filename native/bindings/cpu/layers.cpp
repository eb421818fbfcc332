#include <tuple>

#include "bindings/cpu/block_args.h"
#include "bindings/layer_args.h"
#include "cpu/layers/bias_relu.h"
#include "cpu/layers/dropout.h"

namespace gnnbench {
namespace {

void bias_relu_cpu(Tensor x, Tensor bias) {
  check_biased(x, bias);
  check_cpu(x, "x");
  check_cpu(bias, "bias");
  if (x.numel() == 0) return;
  by_sum_dtype(x, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    bias_relu(data<const S>(bias), x.size(0), x.size(1), data<S>(x));
  });
}

std::tuple<Tensor, Tensor> bias_relu_backward_cpu(Tensor grad, Tensor y) {
  check_back(grad, y);
  check_cpu(y, "y");
  check_cpu(grad, "grad");
  Tensor grad_x = empty_rows({y.size(0), y.size(1)}, y.scalar_type());
  Tensor grad_bias = empty_rows({y.size(1)}, y.scalar_type());
  const int64_t rows = y.numel() == 0 ? 0 : y.size(0);
  by_sum_dtype(y, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    bias_relu_backward(data<const S>(grad), data<const S>(y), rows, y.size(1), data<S>(grad_x),
                       data<S>(grad_bias));
  });
  return {grad_x, grad_bias};
}

Tensor dropout_cpu(Tensor x, Tensor nodes, int64_t key, int64_t batch, int64_t layer, double p,
                   std::optional<Tensor> place) {
  const DropoutArgs args = check_dropout(x, nodes, key, batch, layer, p, place);
  check_cpu(x, "x");
  check_cpu(nodes, "nodes");
  if (place) check_cpu(*place, "place");
  Tensor out = empty_rows({x.size(0), x.size(1)}, x.scalar_type());
  if (x.numel() == 0) return out;
  by_sum_dtype(x, [&](auto* type) {
    by_id_dtype(nodes, [&](auto* id) {
      using S = std::remove_pointer_t<decltype(type)>;
      using Id = std::remove_pointer_t<decltype(id)>;
      const uint64_t own_key = args.place ? static_cast<uint64_t>(args.place[0]) : args.key;
      const uint32_t own_batch = args.place ? static_cast<uint32_t>(args.place[1]) : args.batch;
      dropout(data<const S>(x), data<const Id>(nodes), x.size(0), x.size(1), own_key, own_batch,
              args.layer, args.threshold, static_cast<S>(args.scale), data<S>(out));
    });
  });
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("bias_relu_", TORCH_BOX(&bias_relu_cpu));
  m.impl("bias_relu_backward", TORCH_BOX(&bias_relu_backward_cpu));
  m.impl("dropout", TORCH_BOX(&dropout_cpu));
}

}  // namespace gnnbench
