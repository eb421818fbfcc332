// Arguments of the operators between layers.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

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

// What dropout draws its mask from, checked.
struct DropoutArgs {
  uint64_t key;
  uint32_t batch, layer;
  const int64_t* place;  // key and batch in memory of x's device, or null
  uint32_t threshold;    // p * 2^32, rounded: the share p of all draws is below it
  double scale;          // 1 / (1 - p)
};

inline DropoutArgs check_dropout(const Tensor& x, const Tensor& nodes, int64_t key, int64_t batch,
                                 int64_t layer, double p, const std::optional<Tensor>& place) {
  check_sums(x, "x", 2);
  if (x.size(1) > INT32_MAX) fail("x must have less than 2^31 columns, it has ", x.size(1));
  check_layout(nodes, "nodes", 1);
  check_ids(nodes, "nodes");
  check_rows(nodes, "nodes", x.size(0), "rows of x");
  if (batch < 0 || batch > UINT32_MAX) fail("batch must be 0 to 2^32 - 1, it is ", batch);
  if (layer < 0 || layer > UINT16_MAX) fail("layer must be 0 to 65535, it is ", layer);
  if (!(p >= 0 && p < 1)) fail("p must be at least 0 and below 1, it is ", p);
  const double below = std::min(std::nearbyint(p * 4294967296.0), 4294967295.0);
  if (place) {
    check_layout(*place, "place", 1);
    check_dtype(*place, "place", ScalarType::Long);
    if (place->numel() != 2) fail("place must hold key and batch, it holds ", place->numel());
  }
  return {static_cast<uint64_t>(key),
          static_cast<uint32_t>(batch),
          static_cast<uint32_t>(layer),
          place ? static_cast<const int64_t*>(place->data_ptr()) : nullptr,
          static_cast<uint32_t>(below),
          1 / (1 - p)};
}

// Calls f with a null pointer of the ids' type.
template <class F>
void by_id_dtype(const Tensor& ids, const F& f) {
  if (ids.scalar_type() == ScalarType::Int) return f(static_cast<int32_t*>(nullptr));
  return f(static_cast<int64_t*>(nullptr));
}

}  // namespace gnnbench
