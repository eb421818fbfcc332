#include "cuda/common/atomics.cuh"
#include "cuda/hop/hop.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

template <class Id>
__global__ void degrees_kernel(Csc<Id> graph, Vertices dst, int64_t n, PickSpec spec,
                               uint32_t fanout, int64_t* offsets) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i > n) return;
  int64_t count = 0;
  if (i < n) {
    const int64_t v = dst[i];
    CscRow row;
    if (!graph.has_node(v)) {
      report_fault(offsets + n + 1, Fault::kBadSeed);
    } else if (!graph.read_row(v, row)) {
      report_fault(offsets + n + 1, Fault::kBadRow);
    } else {
      count = pick_count(spec, row.begin, row.degree, fanout);
    }
  }
  offsets[i] = count;
}

}  // namespace

template <class Id>
void hop_degrees(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const PickSpec& spec,
                 uint32_t fanout, int64_t* offsets) {
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(offsets + n + 1, 0, sizeof(int64_t), launch.stream));
  degrees_kernel<Id><<<blocks_for(n + 1, kThreads), kThreads, 0, launch.stream>>>(
      graph, dst, n, spec, fanout, offsets);
  GNNBENCH_CUDA_LAUNCHED(launch, "degrees_kernel");
}

template void hop_degrees<int32_t>(Launch, Csc<int32_t>, Vertices, int64_t, const PickSpec&,
                                   uint32_t, int64_t*);
template void hop_degrees<int64_t>(Launch, Csc<int64_t>, Vertices, int64_t, const PickSpec&,
                                   uint32_t, int64_t*);

}  // namespace gnnbench::cuda
