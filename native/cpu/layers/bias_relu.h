// The operations between two layers: a bias per column, ReLU, and their backward. Each value is
// read and written once; torch needs two passes, and three for the backward.
#pragma once

#include <cstdint>

namespace gnnbench {

// x [rows, dim] becomes max(x + bias [dim], 0). NaN stays NaN.
template <class Real>
void bias_relu(const Real* bias, int64_t rows, int64_t dim, Real* x);

// grad_x [rows, dim]: grad where y, the forward's result, is above 0 (or NaN), else 0. grad_bias
// [dim]: its column sums, in an order that depends on the shape only.
template <class Real>
void bias_relu_backward(const Real* grad, const Real* y, int64_t rows, int64_t dim, Real* grad_x,
                        Real* grad_bias);

}  // namespace gnnbench
