// R-MAT edges on the GPU: one thread per edge.
#include "cuda/rmat/rmat.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    keys_kernel(rmat::Law law, int64_t num_edges, const int64_t* names, uint64_t* keys,
                int32_t* fault) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= num_edges) return;
  const rmat::Ends ends = rmat::ends_of(law, static_cast<uint64_t>(i));
  const auto target = static_cast<uint64_t>(names[ends.target]);
  const auto source = static_cast<uint64_t>(names[ends.source]);
  if ((target | source) >> law.scale) *fault = 1;
  keys[i] = target << law.scale | source;
}

}  // namespace

void rmat_keys(Launch launch, rmat::Law law, int64_t num_edges, const int64_t* names,
               uint64_t* keys, int32_t* fault) {
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(fault, 0, sizeof(int32_t), launch.stream));
  if (num_edges == 0) return;
  keys_kernel<<<blocks_for(num_edges, kThreads), kThreads, 0, launch.stream>>>(law, num_edges,
                                                                               names, keys, fault);
  GNNBENCH_CUDA_LAUNCHED(launch, "keys_kernel");
}

}  // namespace gnnbench::cuda
