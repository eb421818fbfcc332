// Random walks: a thread walks for its row and keeps the most visited nodes. Their number is known
// only then, so rows are padded to one width, counted, scanned and compacted.
//
//   tally of a thread   ids [walk.visits()], counts [walk.visits()]
//
// in shared memory if a block's tallies fit, else in global memory with a bounded number of
// threads.
#include <algorithm>

#include "cuda/hop/row.cuh"
#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kFewThreads = 32;                       // per block with large tallies
constexpr int64_t kSharedBytes = 48 << 10;            // per block without opt-in
constexpr int64_t kScratchBytes = int64_t{64} << 20;  // all tallies in global memory

template <class Id>
constexpr int64_t kTallyBytes = sizeof(Id) + sizeof(uint32_t);  // per visit

// Threads per block with tallies in shared memory; 0 if they do not fit.
template <class Id>
int shared_threads(int64_t stride) {
  for (const int threads : {kThreads, kFewThreads}) {
    if (threads * stride * kTallyBytes<Id> <= kSharedBytes) return threads;
  }
  return 0;
}

// Number of blocks of kThreads with tallies in global memory; each processes several rows.
template <class Id>
int64_t scratch_blocks(int64_t stride, int64_t n) {
  const int64_t fit = kScratchBytes / (kThreads * stride * kTallyBytes<Id>);
  return std::max<int64_t>(1, std::min(fit, blocks_for(n, kThreads)));
}

// Odd: no bank conflicts between the threads of a warp at the same visit.
int64_t stride_of(const Walk& walk) { return walk.visits() | 1; }

// Few threads run if the tallies are in global memory, so their registers do not limit occupancy.
template <class Id, bool kShared>
__global__ void __launch_bounds__(kThreads, kShared ? 16 : 1)
    walk_kernel(Csc<Id> graph, Vertices dst, int64_t n, HopDraws draws, int64_t* offsets,
                Walked<Id> walked, int64_t stride) {
  extern __shared__ int64_t shared_tallies[];
  int64_t* const fault = offsets + n + 1;
  if (*fault != 0) return;  // of the degree pass, or of an earlier row
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  // All ids, then all counts, so that both are aligned.
  void* const tallies = kShared ? shared_tallies : walked.scratch;
  const int64_t sharers = kShared ? blockDim.x : threads;
  const int64_t place = (kShared ? threadIdx.x : thread) * stride;
  Id* const ids = static_cast<Id*>(tallies) + place;
  uint32_t* const counts =
      reinterpret_cast<uint32_t*>(static_cast<Id*>(tallies) + sharers * stride) + place;
  for (int64_t row = thread; row < n; row += threads) {
    if (offsets[row] == 0) continue;  // no in-neighbours
    const int64_t vertex = dst[row];
    const uint32_t kept = pick_random_walk(graph, vertex, draws.spec.walk, draws.fanout,
                                           CachedDraws{draws.of(vertex)}, ids, counts);
    if (kept == kBadWalk || kept == kBadWalkRow) {
      report_fault(fault, kept == kBadWalk ? Fault::kBadNeighbor : Fault::kBadRow);
      offsets[row] = 0;
      continue;
    }
    for (uint32_t k = 0; k < kept; ++k) {
      walked.ids[row * walked.width + k] = ids[k];
      walked.visits[row * walked.width + k] = counts[k];
    }
    offsets[row] = kept;
  }
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    compact_kernel(int64_t n, const int64_t* offsets, Walked<Id> walked, HopOut<Id> out,
                   float* weights) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = item / walked.width, k = item % walked.width;
  if (row >= n) return;
  const int64_t begin = offsets[row], end = offsets[row + 1];
  if (k == 0) {
    out.indptr[row] = out.base + static_cast<int32_t>(begin);
    if (row == n - 1) out.indptr[n] = out.base + static_cast<int32_t>(end);
  }
  if (k >= end - begin) return;
  out.neighbors[begin + k] = walked.ids[item];
  weights[begin + k] = static_cast<float>(walked.visits[item]);
}

}  // namespace

template <class Id>
int64_t hop_walk_scratch_bytes(const Walk& walk, int64_t n) {
  const int64_t stride = stride_of(walk);
  if (shared_threads<Id>(stride) > 0) return 0;
  return scratch_blocks<Id>(stride, n) * kThreads * stride * kTallyBytes<Id>;
}

template <class Id>
void hop_walk(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const HopDraws& draws,
              int64_t* offsets, Walked<Id> walked) {
  if (n == 0) return;
  const int64_t stride = stride_of(draws.spec.walk);
  const int threads = shared_threads<Id>(stride);
  if (threads > 0) {
    const size_t bytes = threads * stride * kTallyBytes<Id>;
    walk_kernel<Id, true><<<blocks_for(n, threads), threads, bytes, launch.stream>>>(
        graph, dst, n, draws, offsets, walked, stride);
  } else {
    walk_kernel<Id, false><<<scratch_blocks<Id>(stride, n), kThreads, 0, launch.stream>>>(
        graph, dst, n, draws, offsets, walked, stride);
  }
  GNNBENCH_CUDA_LAUNCHED(launch, "walk_kernel");
}

template <class Id>
void hop_walk_compact(Launch launch, int64_t n, const int64_t* offsets, Walked<Id> walked,
                      HopOut<Id> out, float* weights) {
  if (n == 0) return hop_empty(launch, out.indptr, out.base);
  compact_kernel<<<blocks_for(n * walked.width, kThreads), kThreads, 0, launch.stream>>>(
      n, offsets, walked, out, weights);
  GNNBENCH_CUDA_LAUNCHED(launch, "compact_kernel");
}

#define GNNBENCH_HOP_WALK(Id)                                                                 \
  template int64_t hop_walk_scratch_bytes<Id>(const Walk&, int64_t);                          \
  template void hop_walk<Id>(Launch, Csc<Id>, Vertices, int64_t, const HopDraws&, int64_t*,   \
                             Walked<Id>);                                                     \
  template void hop_walk_compact<Id>(Launch, int64_t, const int64_t*, Walked<Id>, HopOut<Id>, \
                                     float*)

GNNBENCH_HOP_WALK(int32_t);
GNNBENCH_HOP_WALK(int64_t);

}  // namespace gnnbench::cuda
