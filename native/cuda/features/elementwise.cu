#include <algorithm>

#include "cuda/common/device_assert.h"
#include "cuda/features/elementwise.cuh"
#include "cuda/features/elementwise.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
// The loop's last step may exceed the number of elements by the size of the grid, which is less.
constexpr int64_t kMostNarrow = int64_t{1} << 30;

template <class Index, class Id>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(uint32_t* __restrict__ dst, const uint32_t* __restrict__ src,
                       const Id* __restrict__ idx_list, Index num_rows, Index feat_size,
                       Index num_elem, bool shifted) {
  const Index linear_idx = static_cast<Index>(blockDim.x) * static_cast<Index>(blockIdx.x) +
                           static_cast<Index>(threadIdx.x);
  const Index step = static_cast<Index>(blockDim.x) * static_cast<Index>(gridDim.x);
  for (Index i = linear_idx; i < num_elem; i += step) {
    const int64_t id = static_cast<int64_t>(idx_list[i / feat_size]);
    assert(id >= 0 && id < num_rows && "gnnbench gather: an id is outside the table");
    const Element<Index> at = listing2(i, static_cast<Index>(id), feat_size, shifted);
    dst[at.dst] = src[at.src];
  }
}

}  // namespace

template <class Id>
void gather_elementwise(Launch launch, const void* table, int64_t num_rows, const Id* ids,
                        int64_t n, int64_t row_bytes, void* out, bool shifted) {
  const int64_t feat_size = row_bytes / kElementBytes, num_elem = n * feat_size;
  if (num_elem == 0) return;
  const auto run = [&](auto index) {
    using Index = decltype(index);
    elementwise_kernel<Index, Id><<<blocks_for(num_elem, kThreads), kThreads, 0, launch.stream>>>(
        static_cast<uint32_t*>(out), static_cast<const uint32_t*>(table), ids,
        static_cast<Index>(num_rows), static_cast<Index>(feat_size), static_cast<Index>(num_elem),
        shifted);
    GNNBENCH_CUDA_LAUNCHED(launch, "elementwise_kernel");
  };
  // As printed, indices have 32 bits; larger tables need 64.
  std::max(num_elem, num_rows * feat_size) < kMostNarrow ? run(int32_t{}) : run(int64_t{});
}

template void gather_elementwise<int32_t>(Launch, const void*, int64_t, const int32_t*, int64_t,
                                          int64_t, void*, bool);
template void gather_elementwise<int64_t>(Launch, const void*, int64_t, const int64_t*, int64_t,
                                          int64_t, void*, bool);

}  // namespace gnnbench::cuda
