// Blocks out of the results of a persistent sampler. Rows of a hop are wanted in the order of local
// ids, and those by the hop at which a vertex is first met, which is known only when all is
// sampled.
//
//   tally   edges of each hop, vertices first met at each
//   rank    local ids
//   count   edges of each row, at its local id; a hop's last entry takes its edges back:
//
//             | c0 c1 c2 -sum | c0 c1 .. -sum | ..    an exclusive scan gives
//             |  0 c0 ..  sum |  0 c0 ..  sum | ..    the offsets of all hops
//
//   scan    and emit: rows to their places, neighbours renamed
#include <algorithm>

#include "cuda/common/scan.h"
#include "cuda/pgsampler/pgsampler.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kAll = 0xFFFFFFFFu;
constexpr uint32_t kHops = kMaxTaskHops + 1;

// Where the parts of the arrays begin, by hop.
struct Starts {
  uint32_t known[kHops + 1];            // vertices met before hop h is drawn: known[h + 1] of them
  unsigned long long rows[kHops + 1];   // in indptr
  unsigned long long edges[kHops + 1];  // in indices
};

// By the first warp of the block; kHops is the number of its lanes.
template <class Id>
__device__ void find_starts(const TaskJob<Id>& job, Starts& starts) {
  static_assert(kHops == 32);
  const uint32_t h = threadIdx.x;
  if (h < kHops) {
    const uint32_t found = job.control->found[h];
    uint32_t known = found;
    unsigned long long edges = job.control->hop_edges[h];
    const auto sum = [h](auto value) {
      for (uint32_t d = 1; d < 32; d *= 2) {
        const auto other = __shfl_up_sync(kAll, value, d);
        if (h >= d) value += other;
      }
      return value;
    };
    known = sum(known);
    starts.known[h + 1] = known;
    starts.edges[h + 1] = sum(edges);
    starts.rows[h + 1] = sum(h < job.hops ? known + 1ull : 0ull);
    if (h == 0) starts.known[0] = 0, starts.edges[0] = 0, starts.rows[0] = 0;
  }
  __syncthreads();
}

// Hop at which a vertex is first a source; 0: a seed.
template <class Id>
__device__ uint32_t met_at(const TaskJob<Id>& job, int64_t vertex) {
  const uint32_t word = job.known[job.layout.word(vertex)];
  return __ffs(job.layout.bits(word, job.layout.shift(vertex))) - 1;
}

template <class Id>
__device__ uint32_t queue_size(const TaskJob<Id>& job) {
  return tasks_enqueued(job.control->state);
}

// A grid of fixed size; a thread adds up what it meets of one hop before it tells.
template <class Id>
__global__ void __launch_bounds__(kThreads) tally_kernel(const __grid_constant__ TaskJob<Id> job) {
  __shared__ unsigned long long edges[kHops];
  __shared__ uint32_t found[kHops];
  if (job.control->faults != 0) return;
  if (threadIdx.x < kHops) edges[threadIdx.x] = 0, found[threadIdx.x] = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * kThreads + threadIdx.x, step = gridDim.x * kThreads;
  uint32_t hop = 0;
  unsigned long long sum = 0;
  for (uint32_t i = first, n = queue_size(job); i < n; i += step) {
    const uint64_t word = job.queue[i];
    if (word == 0 || is_chunk(word)) continue;
    if (task_hop(word) != hop) {
      if (sum > 0) atomicAdd(edges + hop, sum);
      hop = task_hop(word), sum = 0;
    }
    sum += job.rows[i].count;
  }
  if (sum > 0) atomicAdd(edges + hop, sum);
  uint32_t met = 0, count = 0;
  for (uint32_t i = first, n = job.control->nodes; i < n; i += step) {
    const uint32_t here = met_at(job, job.nodes[i]);
    if (here != met) {
      if (count > 0) atomicAdd(found + met, count);
      met = here, count = 0;
    }
    ++count;
  }
  if (count > 0) atomicAdd(found + met, count);
  __syncthreads();
  const uint32_t h = threadIdx.x;
  if (h < kHops && edges[h] > 0) atomicAdd(job.control->hop_edges + h, edges[h]);
  if (h < kHops && found[h] > 0) atomicAdd(job.control->found + h, found[h]);
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    rank_kernel(const __grid_constant__ TaskJob<Id> job, const TaskBlocks<Id> blocks) {
  __shared__ Starts starts;
  __shared__ uint32_t here[kHops], before[kHops];
  if (job.control->faults != 0) return;
  const uint32_t n = job.control->nodes, first = blockIdx.x * kThreads;
  if (first >= n) return;
  if (threadIdx.x < kHops) here[threadIdx.x] = 0;
  find_starts(job, starts);
  const uint32_t i = first + threadIdx.x;
  int64_t vertex = 0;
  uint32_t met = 0, rank = 0;
  if (i < n) {
    vertex = job.nodes[i];
    met = met_at(job, vertex);
    rank = atomicAdd(here + met, 1u);
  }
  __syncthreads();
  const uint32_t h = threadIdx.x;
  if (h < kHops && here[h] > 0) before[h] = atomicAdd(job.control->ranked + h, here[h]);
  __syncthreads();
  if (i >= n) return;
  const uint32_t local = starts.known[met] + before[met] + rank;
  blocks.local_of[vertex] = static_cast<int32_t>(local);
  blocks.src_nodes[local] = static_cast<Id>(vertex);
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    count_kernel(const __grid_constant__ TaskJob<Id> job, const TaskBlocks<Id> blocks) {
  __shared__ Starts starts;
  if (job.control->faults != 0) return;
  const uint32_t n = queue_size(job), first = blockIdx.x * kThreads;
  if (first >= n && blockIdx.x > 0) return;
  find_starts(job, starts);
  if (blockIdx.x == 0 && threadIdx.x < job.hops) {
    const uint32_t h = threadIdx.x;
    const unsigned long long last = starts.rows[h + 1] - 1;
    if (last < static_cast<unsigned long long>(blocks.indptr_capacity)) {
      blocks.indptr[last] = -static_cast<int32_t>(job.control->hop_edges[h]);
    }
  }
  const uint32_t i = first + threadIdx.x;
  if (i >= n) return;
  const uint64_t word = job.queue[i];
  if (word == 0 || is_chunk(word)) return;
  const unsigned long long row = starts.rows[task_hop(word)] + blocks.local_of[task_vertex(word)];
  if (row < static_cast<unsigned long long>(blocks.indptr_capacity)) {
    blocks.indptr[row] = static_cast<int32_t>(job.rows[i].count);
  }
}

// `team` threads, a power of two up to 32, write a row.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    emit_kernel(const __grid_constant__ TaskJob<Id> job, const TaskBlocks<Id> blocks,
                uint32_t team) {
  __shared__ Starts starts;
  if (job.control->faults != 0) return;
  const uint32_t n = queue_size(job), rows = kThreads / team, first = blockIdx.x * rows;
  if (first >= n) return;
  find_starts(job, starts);
  const uint32_t i = first + threadIdx.x / team;
  if (i >= n) return;
  const uint64_t word = job.queue[i];
  if (word == 0 || is_chunk(word)) return;
  const uint32_t hop = task_hop(word);
  const unsigned long long row = starts.rows[hop] + blocks.local_of[task_vertex(word)];
  if (row >= static_cast<unsigned long long>(blocks.indptr_capacity)) return;
  const TaskRow result = job.rows[i];
  const unsigned long long to = starts.edges[hop] + blocks.indptr[row];
  for (uint32_t e = threadIdx.x % team; e < result.count; e += team) {
    blocks.indices[to + e] = blocks.local_of[job.neighbors[result.out + e]];
    if (blocks.positions != nullptr) blocks.positions[to + e] = job.positions[result.out + e];
  }
}

}  // namespace

template <class Id>
void pgsampler_local_ids(Launch launch, const TaskJob<Id>& job, const TaskBlocks<Id>& blocks) {
  int device = 0, processors = 0;
  GNNBENCH_CUDA_CALL(launch, cudaGetDevice(&device));
  GNNBENCH_CUDA_CALL(launch,
                     cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  tally_kernel<Id><<<4 * processors, kThreads, 0, launch.stream>>>(job);
  GNNBENCH_CUDA_LAUNCHED(launch, "tally_kernel");
  if (job.node_capacity == 0) return;
  rank_kernel<Id>
      <<<blocks_for(job.node_capacity, kThreads), kThreads, 0, launch.stream>>>(job, blocks);
  GNNBENCH_CUDA_LAUNCHED(launch, "rank_kernel");
}

template <class Id>
void pgsampler_blocks(Launch launch, const TaskJob<Id>& job, const TaskBlocks<Id>& blocks,
                      void* scratch, size_t scratch_bytes) {
  if (blocks.rows_may_miss) {
    GNNBENCH_CUDA_CALL(
        launch,
        cudaMemsetAsync(blocks.indptr, 0, blocks.indptr_capacity * sizeof(int32_t), launch.stream));
  }
  count_kernel<Id>
      <<<blocks_for(job.queue_capacity, kThreads), kThreads, 0, launch.stream>>>(job, blocks);
  GNNBENCH_CUDA_LAUNCHED(launch, "count_kernel");
  exclusive_scan(launch, scratch, scratch_bytes, blocks.indptr, blocks.indptr_capacity);
  uint32_t widest = 1;
  for (uint32_t h = 0; h < job.hops; ++h) widest = std::max(widest, job.fanouts[h]);
  uint32_t team = 1;
  while (team < 32 && team < widest) team *= 2;
  emit_kernel<Id><<<blocks_for(job.queue_capacity, kThreads / team), kThreads, 0, launch.stream>>>(
      job, blocks, team);
  GNNBENCH_CUDA_LAUNCHED(launch, "emit_kernel");
}

template void pgsampler_local_ids<int32_t>(Launch, const TaskJob<int32_t>&,
                                           const TaskBlocks<int32_t>&);
template void pgsampler_local_ids<int64_t>(Launch, const TaskJob<int64_t>&,
                                           const TaskBlocks<int64_t>&);
template void pgsampler_blocks<int32_t>(Launch, const TaskJob<int32_t>&, const TaskBlocks<int32_t>&,
                                        void*, size_t);
template void pgsampler_blocks<int64_t>(Launch, const TaskJob<int64_t>&, const TaskBlocks<int64_t>&,
                                        void*, size_t);

}  // namespace gnnbench::cuda
