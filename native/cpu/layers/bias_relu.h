// What stands between two layers: a bias for each column, ReLU, and the way back. Each value is
// read and written once; torch goes over them two times, and three on the way back.
#pragma once

#include <cstdint>

namespace gnnbench {

// x [rows, dim] becomes the larger of x + bias [dim] and 0; NaN stays.
template <class Real>
void bias_relu(const Real* bias, int64_t rows, int64_t dim, Real* x);

// grad_x [rows, dim]: grad where y, the result, is above 0 (or NaN), else 0; grad_bias [dim]: its
// sums over rows, in an order that the shape alone decides.
template <class Real>
void bias_relu_backward(const Real* grad, const Real* y, int64_t rows, int64_t dim, Real* grad_x,
                        Real* grad_bias);

}  // namespace gnnbench
