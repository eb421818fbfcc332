// The operations between two layers: a bias per column, ReLU, and their backward.
//
// Lower bound, n = rows * dim: the forward reads and writes n values, 2 n in all. The backward
// reads the gradient and the result and writes a gradient, 3 n. torch's backward takes two kernels
// and 4 n, and its sum over rows reads them column by column.
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// x [rows, dim] becomes max(x + bias [dim], 0). NaN stays NaN. `Real` is float or double.
template <class Real>
void bias_relu(Launch launch, const Real* bias, int64_t rows, int64_t dim, Real* x);

// grad_x [rows, dim]: grad where y, the forward's result, is above 0 (or NaN), else 0. grad_bias
// [dim]: its column sums. `parts` [bias_relu_parts(rows), dim] is scratch: each thread block adds
// up its rows there, then the parts are added in a fixed order. Results are bitwise equal for equal
// shape and alignment.
template <class Real>
void bias_relu_backward(Launch launch, const Real* grad, const Real* y, int64_t rows, int64_t dim,
                        Real* parts, Real* grad_x, Real* grad_bias);
int64_t bias_relu_parts(int64_t rows);

}  // namespace gnnbench::cuda
