// The first tasks: a batch's seeds at hop 0.
#include "cuda/common/atomics.cuh"
#include "cuda/pgsampler/pgsampler.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

template <class Id>
__global__ void __launch_bounds__(kThreads)
    seeds_kernel(const __grid_constant__ TaskJob<Id> job, Vertices seeds, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i == 0) job.control->state = static_cast<unsigned long long>(n) * kOneEnqueued;
  if (i >= n) return;
  const int64_t vertex = seeds[i];
  if (!job.graph.has_node(vertex)) {
    report_fault(&job.control->faults, Fault::kBadSeed);
    return;
  }
  const uint32_t shift = job.layout.shift(vertex);
  const uint32_t before = atomicOr(job.known + job.layout.word(vertex), 1u << shift);
  if (job.layout.bits(before, shift) != 0) report_fault(&job.control->faults, Fault::kRepeatedSeed);
  job.queue[i] = task_word(vertex, 0);
}

}  // namespace

template <class Id>
void pgsampler_seeds(Launch launch, const TaskJob<Id>& job, Vertices seeds, int64_t n) {
  if (n == 0) return;
  seeds_kernel<Id><<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(job, seeds, n);
  GNNBENCH_CUDA_LAUNCHED(launch, "seeds_kernel");
}

template void pgsampler_seeds<int32_t>(Launch, const TaskJob<int32_t>&, Vertices, int64_t);
template void pgsampler_seeds<int64_t>(Launch, const TaskJob<int64_t>&, Vertices, int64_t);

}  // namespace gnnbench::cuda
