// Arguments of the operators between layers.
#pragma once

#include "bindings/aggregate_args.h"

namespace gnnbench {

// Checks x [rows, dim], float32 or float64, and a bias with one value per column.
inline void check_biased(const Tensor& x, const Tensor& bias) {
  check_sums(x, "x", 2);
  check_layout(bias, "bias", 1);
  check_dtype(bias, "bias", x.scalar_type());
  if (bias.size(0) != x.size(1)) {
    fail("bias must have a value for each of the ", x.size(1), " columns of x, it has ",
         bias.size(0));
  }
  check_apart(x, "x", bias, "bias");
}

inline void check_back(const Tensor& grad, const Tensor& y) {
  check_sums(y, "y", 2);
  check_layout(grad, "grad", 2);
  check_dtype(grad, "grad", y.scalar_type());
  if (grad.size(0) != y.size(0) || grad.size(1) != y.size(1)) {
    fail("grad must have the shape of y, [", y.size(0), ", ", y.size(1), "], it has [",
         grad.size(0), ", ", grad.size(1), "]");
  }
}

}  // namespace gnnbench
