// The launchers of native/cuda/layers under names that Python can call.
#include <cmath>

#include "cuda/layers/bias_relu.h"
#include "cuda/layers/dropout.h"
#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

namespace {

constexpr Launch kLaunch{nullptr, "test"};

template <class F>
void by_width(int wide, const F& f) {
  if (wide) return f(static_cast<double*>(nullptr));
  return f(static_cast<float*>(nullptr));
}
template <class P>
using Type = std::remove_pointer_t<P>;

}  // namespace

extern "C" {

void bias_relu_of(int wide, const void* bias, int64_t rows, int64_t dim, void* x) {
  by_width(wide, [&](auto* type) {
    using T = Type<decltype(type)>;
    bias_relu(kLaunch, static_cast<const T*>(bias), rows, dim, static_cast<T*>(x));
  });
}

void bias_relu_backward_of(int wide, const void* grad, const void* y, int64_t rows, int64_t dim,
                           void* grad_x, void* grad_bias) {
  by_width(wide, [&](auto* type) {
    using T = Type<decltype(type)>;
    // Uninitialised memory can hold any value.
    std::vector<T> parts(static_cast<size_t>(bias_relu_parts(rows) * dim), NAN);
    bias_relu_backward(kLaunch, static_cast<const T*>(grad), static_cast<const T*>(y), rows, dim,
                       parts.data(), static_cast<T*>(grad_x), static_cast<T*>(grad_bias));
  });
}

void dropout_of(int wide, const void* x, const int64_t* nodes, int64_t rows, int64_t dim,
                uint64_t key, uint32_t batch, const int64_t* place, uint32_t layer,
                uint32_t threshold, double scale, void* out) {
  by_width(wide, [&](auto* type) {
    using T = Type<decltype(type)>;
    dropout(kLaunch, static_cast<const T*>(x), nodes, rows, dim, key, batch, place, layer,
            threshold, static_cast<T>(scale), static_cast<T*>(out));
  });
}
}
