#include "cpu/layers/bias_relu.h"

#include <algorithm>
#include <vector>

#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kRowChunk = 256;

// target_clones applies to plain functions, not to templates.
#define GNNBENCH_ROWS(Real)                                                                     \
  GNNBENCH_CLONES void forward_rows(const Real* bias, int64_t rows, int64_t dim, Real* x) {     \
    for (int64_t row = 0; row < rows; ++row, x += dim) {                                        \
      for (int64_t i = 0; i < dim; ++i) {                                                       \
        const Real sum = x[i] + bias[i];                                                        \
        x[i] = sum < 0 ? Real{0} : sum;                                                         \
      }                                                                                         \
    }                                                                                           \
  }                                                                                             \
  GNNBENCH_CLONES void backward_rows(const Real* __restrict__ grad, const Real* __restrict__ y, \
                                     int64_t rows, int64_t dim, Real* __restrict__ grad_x,      \
                                     Real* __restrict__ sums) {                                 \
    for (int64_t row = 0; row < rows; ++row, grad += dim, y += dim, grad_x += dim) {            \
      for (int64_t i = 0; i < dim; ++i) {                                                       \
        const Real back = y[i] <= 0 ? Real{0} : grad[i];                                        \
        grad_x[i] = back;                                                                       \
        sums[i] += back;                                                                        \
      }                                                                                         \
    }                                                                                           \
  }
GNNBENCH_ROWS(float)
GNNBENCH_ROWS(double)
#undef GNNBENCH_ROWS

}  // namespace

template <class Real>
void bias_relu(const Real* bias, int64_t rows, int64_t dim, Real* x) {
  parallel_chunks(rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    forward_rows(bias, end - begin, dim, x + begin * dim);
  });
}

template <class Real>
void bias_relu_backward(const Real* grad, const Real* y, int64_t rows, int64_t dim, Real* grad_x,
                        Real* grad_bias) {
  const int64_t chunks = num_chunks(rows, kRowChunk);
  std::vector<Real> parts(static_cast<size_t>(chunks * dim));
  parallel_chunks(rows, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    backward_rows(grad + begin * dim, y + begin * dim, end - begin, dim, grad_x + begin * dim,
                  parts.data() + chunk * dim);
  });
  std::fill(grad_bias, grad_bias + dim, Real{0});
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const Real* part = parts.data() + chunk * dim;
    for (int64_t i = 0; i < dim; ++i) grad_bias[i] += part[i];
  }
}

template void bias_relu<float>(const float*, int64_t, int64_t, float*);
template void bias_relu<double>(const double*, int64_t, int64_t, double*);
template void bias_relu_backward<float>(const float*, const float*, int64_t, int64_t, float*,
                                        float*);
template void bias_relu_backward<double>(const double*, const double*, int64_t, int64_t, double*,
                                         double*);

}  // namespace gnnbench
