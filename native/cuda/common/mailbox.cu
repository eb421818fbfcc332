#include "cuda/common/seal.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 32;  // a warp, whose barrier orders the numbers before the ticket

struct Post {
  const void* at[kMostPosted];
  int count[kMostPosted];
  bool wide[kMostPosted];
  Letter letter;
};

__global__ void __launch_bounds__(kThreads) post_kernel(const __grid_constant__ Post post) {
  int64_t* to = post.letter.numbers;
#pragma unroll
  for (int a = 0; a < kMostPosted; ++a) {
    for (int i = static_cast<int>(threadIdx.x); i < post.count[a]; i += kThreads) {
      to[i] = post.wide[a] ? static_cast<const int64_t*>(post.at[a])[i]
                           : static_cast<const int32_t*>(post.at[a])[i];
    }
    to += post.count[a];
  }
  __syncwarp();
  if (threadIdx.x == 0) seal(post.letter);
}

}  // namespace

void post(Launch launch, std::initializer_list<Numbers> arrays, Letter letter) {
  Post post{};
  int a = 0;
  for (const Numbers& numbers : arrays) {
    post.at[a] = numbers.at;
    post.count[a] = numbers.count;
    post.wide[a] = numbers.wide;
    ++a;
  }
  post.letter = letter;
  post_kernel<<<1, kThreads, 0, launch.stream>>>(post);
  GNNBENCH_CUDA_LAUNCHED(launch, "post_kernel");
}

}  // namespace gnnbench::cuda
