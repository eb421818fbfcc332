// Dtypes of values, and the dtypes in which they are accumulated.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace gnnbench::cuda {

// float16 and bfloat16 accumulate in float32, float32 in float32, float64 in float64.
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
