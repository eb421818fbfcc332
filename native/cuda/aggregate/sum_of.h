// The dtypes of values, and those in which they are added up.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace gnnbench::cuda {

// float16 and bfloat16 are added up in float32; so are float32's, and float64's in float64.
template <class T>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<double> {
  using type = double;
};
template <class T>
using Sum = typename SumOf<T>::type;

}  // namespace gnnbench::cuda
