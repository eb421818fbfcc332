#include "cuda/ceilings/wave.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kChains = 8;      // per thread: other warps hide the rest of the latency
constexpr int kTile = 1024;     // units of 16 bytes of shared memory, per block
constexpr uint32_t kUnit = 16;  // bytes

// `one` is unknown at compile time. Each chain has a different start value; otherwise the compiler
// would merge equal chains. Sums of this many ones are exact (kCeilingSteps).
__global__ void __launch_bounds__(kCeilingThreads)
    ceiling_fma_kernel(int64_t steps, float one, unsigned long long* sum) {
  float x[kChains];
#pragma unroll
  for (int k = 0; k < kChains; ++k) x[k] = static_cast<float>(k);
  for (int64_t s = 0; s < steps; ++s) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) x[k] = __fmaf_rn(x[k], one, one);
  }
  unsigned long long own = 0;
#pragma unroll
  for (int k = 0; k < kChains; ++k) own += static_cast<unsigned long long>(x[k]) - k;
  add_count(own, sum);
}

// All words are 1, so their sum is the number read. Volatile loads, because the tile does not
// change.
__global__ void __launch_bounds__(kCeilingThreads)
    ceiling_shared_kernel(int64_t steps, unsigned long long* sum) {
  __shared__ uint4 tile[kTile];
  for (int u = threadIdx.x; u < kTile; u += kCeilingThreads) tile[u] = make_uint4(1, 1, 1, 1);
  __syncthreads();
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  uint32_t own = 0;
  for (int64_t s = 0; s < steps; ++s) {
#pragma unroll
    for (int k = 0; k < kTile / kCeilingThreads; ++k) {
      uint32_t x, y, z, w;
      asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                   : "r"(base + (k * kCeilingThreads + threadIdx.x) * kUnit));
      own += x + y + z + w;
    }
  }
  add_count(4ULL * own, sum);  // bytes
}

__global__ void ceiling_mark_kernel() {}

}  // namespace

void ceiling_fma(Launch launch, int64_t steps, unsigned long long* sum) {
  ceiling_fma_kernel<<<ceiling_grid(launch), kCeilingThreads, 0, launch.stream>>>(steps, 1.0F, sum);
  GNNBENCH_CUDA_LAUNCHED(launch, "ceiling_fma_kernel");
}

void ceiling_shared(Launch launch, int64_t steps, unsigned long long* sum) {
  ceiling_shared_kernel<<<ceiling_grid(launch), kCeilingThreads, 0, launch.stream>>>(steps, sum);
  GNNBENCH_CUDA_LAUNCHED(launch, "ceiling_shared_kernel");
}

void ceiling_mark(Launch launch) {
  ceiling_mark_kernel<<<1, 1, 0, launch.stream>>>();
  GNNBENCH_CUDA_LAUNCHED(launch, "ceiling_mark_kernel");
}

}  // namespace gnnbench::cuda
