#include "cuda/common/publish.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 32;  // a warp, whose barrier orders the numbers before the sequence number

__global__ void __launch_bounds__(kThreads)
    post_kernel(Numbers numbers, Notification notification) {
  for (int i = static_cast<int>(threadIdx.x); i < numbers.count; i += kThreads) {
    notification.numbers[i] = numbers.wide ? static_cast<const int64_t*>(numbers.at)[i]
                                           : static_cast<const int32_t*>(numbers.at)[i];
  }
  __syncwarp();
  if (threadIdx.x == 0) publish(notification);
}

}  // namespace

void post(Launch launch, Numbers numbers, Notification notification) {
  post_kernel<<<1, kThreads, 0, launch.stream>>>(numbers, notification);
  GNNBENCH_CUDA_LAUNCHED(launch, "post_kernel");
}

}  // namespace gnnbench::cuda
