// Shared by the peak kernels: a grid that fills the device, and one sum over all threads.
#pragma once

#include "cuda/ceilings/ceilings.h"

namespace gnnbench::cuda {

constexpr int kCeilingThreads = 256;
constexpr int kCeilingBlocks = 8;  // per multiprocessor: 2048 threads, the maximum

inline unsigned ceiling_grid(Launch launch) {
  int device = 0, processors = 0;
  GNNBENCH_CUDA_CALL(launch, cudaGetDevice(&device));
  GNNBENCH_CUDA_CALL(launch,
                     cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  return static_cast<unsigned>(processors * kCeilingBlocks);
}

// Adds every thread's number to the low word of `sum`, modulo 2^32. All threads of a warp call it.
__device__ __forceinline__ void add_words(uint32_t own, unsigned long long* sum) {
  for (int lane = 16; lane > 0; lane >>= 1) own += __shfl_xor_sync(~0U, own, lane);
  if ((threadIdx.x & 31) == 0) atomicAdd(reinterpret_cast<unsigned int*>(sum), own);
}

// Adds every thread's 64-bit number.
__device__ __forceinline__ void add_count(unsigned long long own, unsigned long long* sum) {
  for (int lane = 16; lane > 0; lane >>= 1) own += __shfl_xor_sync(~0U, own, lane);
  if ((threadIdx.x & 31) == 0) atomicAdd(sum, own);
}

}  // namespace gnnbench::cuda
