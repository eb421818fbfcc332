#include "cuda/aggregate/symmetric.h"
#include "cuda/common/device_assert.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowLanes = 8;

__global__ void __launch_bounds__(kThreads)
    symmetric_counts_kernel(const int32_t* __restrict__ indices, int64_t num_edges, int64_t num_src,
                            int32_t* __restrict__ counts) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e >= num_edges) return;
  const int32_t source = __ldg(indices + e);
  assert(source >= 0 && source < num_src && "gnnbench symmetric: an index is outside the block");
  atomicAdd(&counts[source], 1);
}

// A few lanes per destination.
__global__ void __launch_bounds__(kThreads)
    symmetric_weights_kernel(const int32_t* __restrict__ indptr,
                             const int32_t* __restrict__ indices,
                             const int32_t* __restrict__ counts, int64_t num_edges, int64_t num_dst,
                             float* __restrict__ out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = thread / kRowLanes;
  if (row >= num_dst) return;
  const int32_t begin = __ldg(indptr + row), end = __ldg(indptr + row + 1);
  // Every edge must belong to a row, because `out` must be written in full.
  assert(begin >= 0 && begin <= end && end <= num_edges && (row > 0 || begin == 0) &&
         (row < num_dst - 1 || end == num_edges) &&
         "gnnbench symmetric: indptr does not cover indices");
  const float degree = static_cast<float>(end - begin);
  for (int64_t e = begin + thread % kRowLanes; e < end; e += kRowLanes) {
    const float begun = static_cast<float>(__ldg(counts + __ldg(indices + e)));
    out[e] = 1.0f / sqrtf(degree * begun);
  }
}

}  // namespace

void symmetric_weights(Launch launch, const int32_t* indptr, const int32_t* indices,
                       int64_t num_edges, int64_t num_src, int64_t num_dst, int32_t* counts,
                       float* out) {
  if (num_edges == 0) return;
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(counts, 0, num_src * sizeof(int32_t), launch.stream));
  symmetric_counts_kernel<<<static_cast<unsigned>(blocks_for(num_edges, kThreads)), kThreads, 0,
                            launch.stream>>>(indices, num_edges, num_src, counts);
  GNNBENCH_CUDA_LAUNCHED(launch, "symmetric_counts_kernel");
  symmetric_weights_kernel<<<static_cast<unsigned>(blocks_for(num_dst * kRowLanes, kThreads)),
                             kThreads, 0, launch.stream>>>(indptr, indices, counts, num_edges,
                                                           num_dst, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "symmetric_weights_kernel");
}

}  // namespace gnnbench::cuda
