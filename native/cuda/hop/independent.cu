// Picks with replacement: kGroup threads share a row and each fills one slot at a time.
#include "cuda/hop/row.cuh"
#include "cuda/pick/independent.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kGroup = 16;

template <class Id, Pick kPick>
__global__ void __launch_bounds__(kThreads, 16) independent_kernel(HopJob<Id> job) {
  constexpr int kRows = kThreads / kGroup;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kGroup;
  if (row >= job.n) return;
  const HopRow r = load_row(job, row);
  const uint32_t rank = threadIdx.x % kGroup;
  if (rank == 0) write_indptr(job, row, r.out);
  PickSpec spec = job.draws.spec;
  spec.pick = kPick;  // a compile-time constant, so that one case remains
  CachedDraws draws{job.draws.of(r.vertex)};
  for (uint32_t s = rank; s < r.count; s += kGroup) {
    write_slot(job, r, s, independent_slot(spec, r.row, s, draws));
  }
}

}  // namespace

template <class Id>
void hop_independent(Launch launch, const HopJob<Id>& job) {
  const int64_t blocks = blocks_for(job.n, kThreads / kGroup);
  const auto run = [&](auto* kernel) { kernel<<<blocks, kThreads, 0, launch.stream>>>(job); };
  switch (job.draws.spec.pick) {
    case Pick::kWithReplacement: run(independent_kernel<Id, Pick::kWithReplacement>); break;
    case Pick::kWeightedAlias: run(independent_kernel<Id, Pick::kWeightedAlias>); break;
    default: run(independent_kernel<Id, Pick::kWeightedPrefix>);
  }
  GNNBENCH_CUDA_LAUNCHED(launch, "independent_kernel");
}

template void hop_independent<int32_t>(Launch, const HopJob<int32_t>&);
template void hop_independent<int64_t>(Launch, const HopJob<int64_t>&);

}  // namespace gnnbench::cuda
