#include <algorithm>

#include "cuda/common/copies.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;
constexpr int kMost = 16;                                 // copies per launch
constexpr int64_t kBlockBytes = 16 * kThreads * kUnroll;  // per thread block

struct Copies {
  Copy copies[kMost];
  uint32_t first[kMost];  // first block of each copy; behind the last one: the end
};

template <class Word>
__device__ void copy_words(const Copy& copy, int64_t begin, int64_t end) {
  const auto* from = static_cast<const Word*>(copy.from);
  auto* to = static_cast<Word*>(copy.to);
  for (int64_t first = begin + threadIdx.x; first < end; first += kThreads * kUnroll) {
    Word words[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + u * kThreads < end) words[u] = from[first + u * kThreads];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + u * kThreads < end) to[first + u * kThreads] = words[u];
    }
  }
}

__device__ void write_numbers(const Copy& copy, int64_t begin, int64_t end) {
  auto* to = static_cast<int32_t*>(copy.to);
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    to[i] = static_cast<int32_t>(min(copy.begin + i * copy.step, copy.most));
  }
}

__global__ void __launch_bounds__(kThreads) copy_kernel(const __grid_constant__ Copies all) {
  int which = 0;
#pragma unroll
  for (int c = 1; c < kMost; ++c) which += blockIdx.x >= all.first[c];
  const Copy& copy = all.copies[which];
  const int64_t begin = static_cast<int64_t>(blockIdx.x - all.first[which]) * kBlockBytes;
  const int64_t end = min(copy.bytes, begin + kBlockBytes);
  if (copy.from == nullptr) return write_numbers(copy, begin / 4, end / 4);
  const auto addresses =
      reinterpret_cast<uintptr_t>(copy.from) | reinterpret_cast<uintptr_t>(copy.to);
  if (addresses % 16 != 0) return copy_words<uint32_t>(copy, begin / 4, end / 4);
  copy_words<uint4>(copy, begin / 16, end / 16);
  copy_words<uint32_t>(copy, end / 16 * 4, end / 4);
}

}  // namespace

void copy_all(Launch launch, const std::vector<Copy>& copies) {
  Copies part;
  int count = 0;
  uint32_t blocks = 0;
  const auto flush = [&] {
    if (count == 0) return;
    for (int c = count; c < kMost; ++c) part.first[c] = UINT32_MAX;
    copy_kernel<<<blocks, kThreads, 0, launch.stream>>>(part);
    GNNBENCH_CUDA_LAUNCHED(launch, "copy_kernel");
    count = 0;
    blocks = 0;
  };
  for (const Copy& copy : copies) {
    if (copy.bytes == 0) continue;
    part.copies[count] = copy;
    part.first[count] = blocks;
    blocks += static_cast<uint32_t>(blocks_for(copy.bytes, kBlockBytes));
    if (++count == kMost) flush();
  }
  flush();
}

}  // namespace gnnbench::cuda
