#include "cuda/common/seal.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 32;  // a warp, whose barrier orders the numbers before the ticket

__global__ void __launch_bounds__(kThreads) post_kernel(Numbers numbers, Letter letter) {
  for (int i = static_cast<int>(threadIdx.x); i < numbers.count; i += kThreads) {
    letter.numbers[i] = numbers.wide ? static_cast<const int64_t*>(numbers.at)[i]
                                     : static_cast<const int32_t*>(numbers.at)[i];
  }
  __syncwarp();
  if (threadIdx.x == 0) seal(letter);
}

}  // namespace

void post(Launch launch, Numbers numbers, Letter letter) {
  post_kernel<<<1, kThreads, 0, launch.stream>>>(numbers, letter);
  GNNBENCH_CUDA_LAUNCHED(launch, "post_kernel");
}

}  // namespace gnnbench::cuda
