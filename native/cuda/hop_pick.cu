// Pick pass of one hop. Every kernel writes slot s of a row to offsets[row] + s, so that results
// are equal to the sequential definitions of pick.h slot by slot.
//
// Reservoir, as DGL's kernel: a row's threads share its draws; a slot keeps the largest position
// that drew it (atomicMax), which is the last writer of the sequential loop. A warp takes a row,
// and the whole block joins for rows of more than kBlockDegree.
#include "cuda/kernels.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kBlockDegree = 2048;
constexpr uint32_t kReservoirSharedFanout = 512;  // 8 KiB of slots a block
constexpr uint32_t kFloydThreadFanout = 64;       // 32.5 KiB of slots a block
constexpr int kWriters = 16;                      // threads that write out one Floyd row

template <class Id>
struct Job {
  Csc<Id> graph;
  Vertices dst;
  int64_t n;
  uint32_t fanout;
  uint64_t key;
  uint32_t hop;
  uint32_t batch;
  int64_t* offsets;
  uint32_t* slots;
  HopOut<Id> out;
};

struct Row {
  int64_t vertex;
  int64_t begin;  // in graph.indices
  int64_t out;    // in the outputs
  uint32_t degree;
  uint32_t count;  // min(degree, fanout)
  bool picks;      // false: every position, in stored order
};

template <class Id>
__device__ Row load_row(const Job<Id>& job, int64_t row) {
  Row r;
  r.vertex = job.dst[row];
  r.begin = job.graph.indptr[r.vertex];
  r.out = job.offsets[row];
  r.degree = static_cast<uint32_t>(job.graph.indptr[r.vertex + 1] - r.begin);
  r.count = min(r.degree, job.fanout);
  r.picks = r.degree > job.fanout && job.fanout > 0;
  return r;
}

template <class Id>
__device__ Draws draws_of(const Job<Id>& job, const Row& r) {
  return Draws{job.key, static_cast<uint64_t>(r.vertex), job.hop, job.batch};
}

template <class Id>
__device__ void write_slot(const Job<Id>& job, const Row& r, uint32_t slot, uint32_t position) {
  const int64_t from = r.begin + position, to = r.out + slot;
  const Id neighbor = job.graph.indices[from];
  if (neighbor < 0 || neighbor >= job.graph.num_nodes) job.offsets[job.n + 1] = kHopBadIndices;
  job.out.neighbors[to] = neighbor;
  if (job.out.positions != nullptr) job.out.positions[to] = from;
}

template <class Id>
__device__ void write_indptr(const Job<Id>& job, int64_t row, int64_t offset) {
  job.out.indptr[row] = job.out.base + static_cast<int32_t>(offset);
  if (row == job.n - 1) {
    job.out.indptr[job.n] = job.out.base + static_cast<int32_t>(job.offsets[job.n]);
  }
}

// The same draws as Draws, four at a time: consecutive draws share a Philox block.
struct CachedDraws {
  Draws draws;
  uint32_t index = 0xFFFFFFFFu;  // no block has it: draw / 4 < 2^30
  Philox4 words = {};

  __device__ uint32_t operator()(uint32_t draw) {
    if ((draw >> 2) != index) {
      index = draw >> 2;
      words = draws.block(index);
    }
    const uint32_t low = draw & 1u ? words.y : words.x;
    const uint32_t high = draw & 1u ? words.w : words.z;
    return draw & 2u ? high : low;
  }
};

__device__ __forceinline__ void offer(uint32_t* slots, uint32_t fanout, uint32_t degree,
                                      uint32_t word, uint32_t position) {
  if (position >= degree) return;
  const uint32_t slot = bounded(word, position + 1);
  if (slot < fanout) atomicMax(slots + slot, position);
}

template <bool kWholeBlock>
__device__ void sync_team() {
  if constexpr (kWholeBlock) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}

// All threads of the team (a warp or the block) call it for the same row.
template <bool kWholeBlock, class Id>
__device__ void reservoir_row(const Job<Id>& job, const Row& r, uint32_t* slots) {
  const uint32_t team = kWholeBlock ? kThreads : 32;
  const uint32_t rank = kWholeBlock ? threadIdx.x : threadIdx.x % 32;
  for (uint32_t s = rank; s < job.fanout; s += team) slots[s] = s;
  sync_team<kWholeBlock>();
  const Draws draws = draws_of(job, r);
  const uint32_t blocks = (r.degree - job.fanout + 3) / 4;
  for (uint32_t b = rank; b < blocks; b += team) {
    const Philox4 words = draws.block(b);
    const uint32_t position = job.fanout + 4 * b;
    offer(slots, job.fanout, r.degree, words.x, position);
    offer(slots, job.fanout, r.degree, words.y, position + 1);
    offer(slots, job.fanout, r.degree, words.z, position + 2);
    offer(slots, job.fanout, r.degree, words.w, position + 3);
  }
  sync_team<kWholeBlock>();
  for (uint32_t s = rank; s < job.fanout; s += team) write_slot(job, r, s, slots[s]);
}

template <class Id, bool kShared>
__global__ void __launch_bounds__(kThreads) reservoir_kernel(Job<Id> job) {
  extern __shared__ uint32_t shared_slots[];
  __shared__ bool large[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kWarps;

  const auto slots_of = [&](int w, const Row& r) {
    return kShared ? shared_slots + static_cast<uint32_t>(w) * job.fanout : job.slots + r.out;
  };

  bool is_large = false;
  if (first + warp < job.n) {
    const Row r = load_row(job, first + warp);
    if (lane == 0) write_indptr(job, first + warp, r.out);
    if (!r.picks) {
      for (uint32_t s = lane; s < r.count; s += 32) write_slot(job, r, s, s);
    } else if (r.degree <= kBlockDegree) {
      reservoir_row<false>(job, r, slots_of(warp, r));
    } else {
      is_large = true;
    }
  }
  if (lane == 0) large[warp] = is_large;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) {
    if (!large[w]) continue;  // the same for all threads
    const Row r = load_row(job, first + w);
    reservoir_row<true>(job, r, slots_of(w, r));
  }
}

// A thread runs the sequential definition for its row into shared memory; the block writes out.
template <class Id>
__global__ void __launch_bounds__(kThreads) floyd_thread_kernel(Job<Id> job, uint32_t stride) {
  extern __shared__ uint32_t shared_slots[];  // [kThreads][stride], stride odd: no bank conflicts
  __shared__ Row rows[kThreads];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads;
  const int64_t row = first + threadIdx.x;
  if (row < job.n) {
    const Row r = load_row(job, row);
    write_indptr(job, row, r.out);
    if (r.picks) {
      pick_floyd(r.degree, job.fanout, CachedDraws{draws_of(job, r)},
                 shared_slots + threadIdx.x * stride);
    }
    rows[threadIdx.x] = r;
  }
  __syncthreads();
  const int here = static_cast<int>(min(static_cast<int64_t>(kThreads), job.n - first));
  for (int i = threadIdx.x / kWriters; i < here; i += kThreads / kWriters) {
    const Row r = rows[i];
    for (uint32_t s = threadIdx.x % kWriters; s < r.count; s += kWriters) {
      write_slot(job, r, s, r.picks ? shared_slots[i * stride + s] : s);
    }
  }
}

// Large fanouts: a warp takes a row and looks for a repeated value with all its lanes.
template <class Id>
__global__ void __launch_bounds__(kThreads) floyd_warp_kernel(Job<Id> job) {
  const int lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= job.n) return;  // whole warps only
  const Row r = load_row(job, row);
  if (lane == 0) write_indptr(job, row, r.out);
  if (!r.picks) {
    for (uint32_t s = lane; s < r.count; s += 32) write_slot(job, r, s, s);
    return;
  }
  uint32_t* slots = job.slots + r.out;
  CachedDraws draws{draws_of(job, r)};
  for (uint32_t s = 0; s < job.fanout; ++s) {
    const uint32_t j = r.degree - job.fanout + s;
    uint32_t value = bounded(draws(s), j + 1);
    bool repeated = false;
    for (uint32_t t = lane; t < s; t += 32) repeated |= slots[t] == value;
    if (__any_sync(0xFFFFFFFFu, repeated)) value = j;
    if (lane == 0) slots[s] = value;
    __syncwarp();
  }
  for (uint32_t s = lane; s < job.fanout; s += 32) write_slot(job, r, s, slots[s]);
}

__global__ void base_kernel(int32_t* indptr, int32_t base) { indptr[0] = base; }

}  // namespace

bool hop_pick_needs_slots(Pick pick, uint32_t fanout) {
  return fanout > (pick == Pick::kReservoir ? kReservoirSharedFanout : kFloydThreadFanout);
}

template <class Id>
void hop_pick(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, uint32_t fanout, Pick pick,
              uint64_t key, uint32_t hop, uint32_t batch, int64_t* offsets, uint32_t* slots,
              HopOut<Id> out) {
  const Job<Id> job{graph, dst, n, fanout, key, hop, batch, offsets, slots, out};
  if (n == 0) {
    base_kernel<<<1, 1, 0, launch.stream>>>(out.indptr, out.base);
    GNNBENCH_CUDA_LAUNCHED(launch, "base_kernel");
    return;
  }
  const bool in_scratch = hop_pick_needs_slots(pick, fanout);
  if (pick == Pick::kReservoir) {
    const int64_t blocks = blocks_for(n, kWarps);
    if (in_scratch) {
      reservoir_kernel<Id, false><<<blocks, kThreads, 0, launch.stream>>>(job);
    } else {
      const size_t bytes = kWarps * fanout * sizeof(uint32_t);
      reservoir_kernel<Id, true><<<blocks, kThreads, bytes, launch.stream>>>(job);
    }
    GNNBENCH_CUDA_LAUNCHED(launch, "reservoir_kernel");
  } else if (in_scratch) {
    floyd_warp_kernel<Id><<<blocks_for(n, kWarps), kThreads, 0, launch.stream>>>(job);
    GNNBENCH_CUDA_LAUNCHED(launch, "floyd_warp_kernel");
  } else {
    const uint32_t stride = fanout | 1u;
    const size_t bytes = kThreads * stride * sizeof(uint32_t);
    floyd_thread_kernel<Id>
        <<<blocks_for(n, kThreads), kThreads, bytes, launch.stream>>>(job, stride);
    GNNBENCH_CUDA_LAUNCHED(launch, "floyd_thread_kernel");
  }
}

template void hop_pick<int32_t>(Launch, Csc<int32_t>, Vertices, int64_t, uint32_t, Pick, uint64_t,
                                uint32_t, uint32_t, int64_t*, uint32_t*, HopOut<int32_t>);
template void hop_pick<int64_t>(Launch, Csc<int64_t>, Vertices, int64_t, uint32_t, Pick, uint64_t,
                                uint32_t, uint32_t, int64_t*, uint32_t*, HopOut<int64_t>);

}  // namespace gnnbench::cuda
