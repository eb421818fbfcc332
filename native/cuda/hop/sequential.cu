// Picks whose draws depend on earlier draws: Floyd and Fisher-Yates.
//
//   slots of a row   floyd [fanout]   fisher_yates [fanout], then its moves [2 fanout]
//
// Small fanouts: a thread runs the sequential definition for its row into shared memory, and the
// block writes the results. Large fanouts: a warp processes a row with slots in global memory, and
// all its lanes search the earlier draws.
#include "cuda/hop/row.cuh"
#include "cuda/pick/fisher_yates.cuh"
#include "cuda/pick/floyd.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kSharedWords = 64;  // maximum per row: 32.5 KiB of slots per block
constexpr int kWriters = 16;           // threads that write one row

int64_t words_of(Pick pick, uint32_t fanout) {
  return (pick == Pick::kFisherYates ? 3 : 1) * static_cast<int64_t>(fanout);
}

template <class Id, Pick kPick>
__global__ void __launch_bounds__(kThreads) thread_kernel(HopJob<Id> job, uint32_t stride) {
  extern __shared__ uint32_t shared_slots[];  // [kThreads][stride], stride odd: no bank conflicts
  __shared__ HopRow rows[kThreads];
  const uint32_t fanout = job.draws.fanout;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads;
  const int64_t row = first + threadIdx.x;
  if (row < job.n) {
    const HopRow r = load_row(job, row);
    write_indptr(job, row, r.out);
    if (r.picks) {
      uint32_t* slots = shared_slots + threadIdx.x * stride;
      const CachedDraws draws{job.draws.of(r.vertex)};
      if constexpr (kPick == Pick::kFloyd) {
        pick_floyd(r.row.degree, fanout, draws, slots);
      } else {
        pick_fisher_yates(r.row.degree, fanout, draws, slots, slots + fanout);
      }
    }
    rows[threadIdx.x] = r;
  }
  __syncthreads();
  const int here = static_cast<int>(min(static_cast<int64_t>(kThreads), job.n - first));
  for (int i = threadIdx.x / kWriters; i < here; i += kThreads / kWriters) {
    const HopRow r = rows[i];
    for (uint32_t s = threadIdx.x % kWriters; s < r.count; s += kWriters) {
      write_slot(job, r, s, r.picks ? shared_slots[i * stride + s] : s);
    }
  }
}

template <class Id, Pick kPick>
__global__ void __launch_bounds__(kThreads) warp_kernel(HopJob<Id> job) {
  const uint32_t fanout = job.draws.fanout, lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= job.n) return;  // uniform over a warp
  const HopRow r = load_row(job, row);
  if (lane == 0) write_indptr(job, row, r.out);
  if (!r.picks) {
    for (uint32_t s = lane; s < r.count; s += 32) write_slot(job, r, s, s);
    return;
  }
  uint32_t* slots = job.slots + r.out;
  const Draws draws = job.draws.of(r.vertex);
  if constexpr (kPick == Pick::kFloyd) {
    floyd_warp(lane, r.row.degree, fanout, draws, slots);
  } else {
    uint32_t* moved = job.slots + job.offsets[job.n] + 2 * r.out;
    fisher_yates_warp(lane, r.row.degree, fanout, draws, slots, moved, moved + fanout);
  }
  for (uint32_t s = lane; s < fanout; s += 32) write_slot(job, r, s, slots[s]);
}

template <class Id, Pick kPick>
void launch_kernel(Launch launch, const HopJob<Id>& job) {
  const int64_t words = words_of(kPick, job.draws.fanout);
  if (words > kSharedWords) {
    warp_kernel<Id, kPick><<<blocks_for(job.n, kWarps), kThreads, 0, launch.stream>>>(job);
  } else {
    const uint32_t stride = static_cast<uint32_t>(words) | 1u;
    const size_t bytes = kThreads * stride * sizeof(uint32_t);
    thread_kernel<Id, kPick>
        <<<blocks_for(job.n, kThreads), kThreads, bytes, launch.stream>>>(job, stride);
  }
  GNNBENCH_CUDA_LAUNCHED(launch, "sequential pick");
}

}  // namespace

int64_t hop_sequential_slots(Pick pick, uint32_t fanout, int64_t edges) {
  const int64_t words = words_of(pick, fanout);
  return words > kSharedWords ? words / fanout * edges : 0;
}

template <class Id>
void hop_sequential(Launch launch, const HopJob<Id>& job) {
  if (job.draws.spec.pick == Pick::kFloyd) {
    launch_kernel<Id, Pick::kFloyd>(launch, job);
  } else {
    launch_kernel<Id, Pick::kFisherYates>(launch, job);
  }
}

template void hop_sequential<int32_t>(Launch, const HopJob<int32_t>&);
template void hop_sequential<int64_t>(Launch, const HopJob<int64_t>&);

}  // namespace gnnbench::cuda
