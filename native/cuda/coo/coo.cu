#include "cuda/coo/coo.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void count_kernel(const int32_t* rows, int64_t n, int32_t* counts, int32_t* ranks) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e < n) ranks[e] = atomicAdd(counts + rows[e], 1);
}

__global__ void place_kernel(CooEdges edges, const int32_t* indptr, int32_t* indices,
                             int64_t* positions) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e >= edges.n) return;
  const int32_t to = indptr[edges.rows[e]] + edges.ranks[e];
  indices[to] = edges.cols[e];
  if (positions != nullptr) positions[to] = edges.positions[e];
}

}  // namespace

void coo_count(Launch launch, const int32_t* rows, int64_t n, int32_t* counts, int32_t* ranks) {
  if (n == 0) return;
  count_kernel<<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(rows, n, counts, ranks);
  GNNBENCH_CUDA_LAUNCHED(launch, "count_kernel");
}

void coo_place(Launch launch, const CooEdges& edges, const int32_t* indptr, int32_t* indices,
               int64_t* positions) {
  if (edges.n == 0) return;
  place_kernel<<<blocks_for(edges.n, kThreads), kThreads, 0, launch.stream>>>(edges, indptr,
                                                                              indices, positions);
  GNNBENCH_CUDA_LAUNCHED(launch, "place_kernel");
}

}  // namespace gnnbench::cuda
