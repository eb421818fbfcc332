// Picks with replacement: no draw depends on another, so kGroup threads share a row and each runs
// the sequential definition for one slot at a time.
#include "cuda/hop_row.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kGroup = 16;

template <class Id, Pick kPick>
__global__ void __launch_bounds__(kThreads) independent_kernel(HopJob<Id> job) {
  constexpr uint32_t kDraws = kPick == Pick::kWithReplacement ? 1 : 2;  // of a slot
  constexpr int kRows = kThreads / kGroup;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kGroup;
  if (row >= job.n) return;
  const HopRow r = load_row(job, row);
  const uint32_t rank = threadIdx.x % kGroup;
  if (rank == 0) write_indptr(job, row, r.out);
  PickSpec spec = job.draws.spec;
  spec.pick = kPick;  // known to the compiler: one case of pick_row is left
  CachedDraws draws{job.draws.of(r.vertex)};
  for (uint32_t s = rank; s < r.count; s += kGroup) {
    uint32_t position = 0;
    const auto draw = [&](uint32_t d) { return draws(kDraws * s + d); };
    pick_row(spec, r.begin, r.degree, 1, draw, &position, &position);
    write_slot(job, r, s, position);
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
