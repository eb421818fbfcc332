// What stands between two layers: a bias for each column, ReLU, and the way back.
//
// The floor, n = rows * dim: forward reads and writes n, 2 n values; backward reads the gradient
// and the result and writes a gradient, 3 n. torch's own backward takes two kernels and 4 n, and
// its sum over rows reads them column by column.
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// x [rows, dim] becomes the larger of x + bias [dim] and 0; NaN stays. `Real` is float or double.
template <class Real>
void bias_relu(Launch launch, const Real* bias, int64_t rows, int64_t dim, Real* x);

// grad_x [rows, dim]: grad where y, the result, is above 0 (or NaN), else 0; grad_bias [dim]: its
// sums over rows. `parts` [bias_relu_parts(rows), dim] is scratch: a block of threads adds up
// its rows there, and parts are added in an order of their own: of one shape, aligned alike, always
// the same.
template <class Real>
void bias_relu_backward(Launch launch, const Real* grad, const Real* y, int64_t rows, int64_t dim,
                        Real* parts, Real* grad_x, Real* grad_bias);
int64_t bias_relu_parts(int64_t rows);

}  // namespace gnnbench::cuda
