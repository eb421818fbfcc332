#include "cuda/common/philox.h"
#include "gnnbench/rng.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void philox_kernel(uint64_t key, const int64_t* counters, int64_t* out, int64_t n,
                              int32_t* fault) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t* c = counters + 4 * i;
  if (((c[0] | c[1] | c[2] | c[3]) >> 32) != 0) *fault = 1;
  const Philox4 words =
      philox4x32(key, Philox4{static_cast<uint32_t>(c[0]), static_cast<uint32_t>(c[1]),
                              static_cast<uint32_t>(c[2]), static_cast<uint32_t>(c[3])});
  out[4 * i + 0] = words.x;
  out[4 * i + 1] = words.y;
  out[4 * i + 2] = words.z;
  out[4 * i + 3] = words.w;
}

}  // namespace

void philox(Launch launch, uint64_t key, const int64_t* counters, int64_t* out, int64_t n,
            int32_t* fault) {
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(fault, 0, sizeof(int32_t), launch.stream));
  if (n == 0) return;
  philox_kernel<<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(key, counters, out, n,
                                                                         fault);
  GNNBENCH_CUDA_LAUNCHED(launch, "philox_kernel");
}

}  // namespace gnnbench::cuda
