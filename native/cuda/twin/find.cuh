// Searches of the twin generator.
#pragma once

#include <cstdint>

namespace gnnbench::cuda {

// The i with bounds[i] <= value < bounds[i + 1]; bounds rise from at most `value` to above it.
__device__ __forceinline__ int64_t range_of(const int64_t* bounds, int64_t ranges, int64_t value) {
  int64_t low = 0, high = ranges;  // bounds[low] <= value < bounds[high]
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (bounds[middle] <= value) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace gnnbench::cuda
