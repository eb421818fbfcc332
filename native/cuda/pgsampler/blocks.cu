// Builds blocks from the results of a persistent sampler. Rows of a hop must be in the order of
// local ids, which are ordered by the hop at which a vertex is first met. That is known only when
// sampling is complete. The bits of the known vertices then suffice: a vertex's local id is its
// rank among those first met at its hop, after all those met earlier.
//
//   tally   edges of each hop; vertices first met at each, by group
//   scan    of these, hop after hop:  | groups of hop 0 | groups of hop 1 | .. | all
//   seat    the seeds keep their order: maps ranks to seeds. Posts the sizes
//   count   edges of each row, at its local id; the last entry of a hop subtracts its edges:
//
//             | c0 c1 c2 -sum | c0 c1 .. -sum | ..    an exclusive scan gives
//             |  0 c0 ..  sum |  0 c0 ..  sum | ..    the offsets of all hops
//
//   scan    meanwhile the host reads the sizes and allocates tensors, into which
//   name    writes nodes, and
//   emit    writes rows at their places, with relabelled neighbours
#include <algorithm>

#include "cuda/common/scan.h"
#include "cuda/pgsampler/pgsampler.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kAll = 0xFFFFFFFFu;
constexpr uint32_t kHops = kMaxTaskHops + 1;

// First entry of each hop's rows in indptr.
struct Starts {
  unsigned long long rows[kHops + 1];
};

// Called by the first warp of the block; kHops is the number of its lanes.
template <class Id>
__device__ void find_starts(const TaskJob<Id>& job, Starts& starts) {
  static_assert(kHops == 32);
  const uint32_t h = threadIdx.x;
  if (h < kHops) {
    unsigned long long rows = h < job.hops ? job.control->known[h] + 1ull : 0ull;
    for (uint32_t d = 1; d < 32; d *= 2) {
      const unsigned long long other = __shfl_up_sync(kAll, rows, d);
      if (h >= d) rows += other;
    }
    starts.rows[h + 1] = rows;
    if (h == 0) starts.rows[0] = 0;
  }
  __syncthreads();
}

template <class Id>
__device__ uint32_t queue_size(const TaskJob<Id>& job) {
  return tasks_enqueued(job.control->state);
}

// The rank of a vertex among those first met at the same hop.
template <class Id>
__device__ int32_t rank_of(const TaskJob<Id>& job, const TaskRanks& ranks, int64_t vertex,
                           uint32_t& met) {
  const KnownLayout& layout = job.layout;
  const int64_t group = vertex / KnownLayout::kGroup;
  const uint32_t* const words = job.known + group * layout.group_words();
  const uint32_t own = static_cast<uint32_t>(layout.word(vertex) - (words - job.known));
  const uint32_t shift = layout.shift(vertex);
  met = __ffs(layout.bits(words[own], shift)) - 1;
  uint32_t rank = __popc(layout.first_met(words[own], met) & ((1u << shift) - 1));
  for (uint32_t w = 0; w < own; ++w) rank += __popc(layout.first_met(words[w], met));
  return ranks.sums[met * ranks.groups + group] + static_cast<int32_t>(rank);
}

template <class Id>
__device__ int32_t local_id(const TaskJob<Id>& job, const TaskRanks& ranks, int64_t vertex) {
  uint32_t met = 0;
  const int32_t rank = rank_of(job, ranks, vertex, met);
  return met == 0 ? ranks.seed_of[rank] : rank;
}

// A grid of fixed size. A thread sums what it meets of one hop before it adds the sum to shared
// memory. The edges of all hops are below 2^31, so 32-bit sums suffice, for which shared memory has
// native atomics.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    tally_kernel(const __grid_constant__ TaskJob<Id> job, const TaskRanks ranks) {
  __shared__ uint32_t edges[kHops];
  if (job.control->faults != 0) return;
  if (threadIdx.x < kHops) edges[threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  uint32_t hop = 0, sum = 0;
  for (int64_t i = first, n = queue_size(job); i < n; i += step) {
    const uint64_t word = job.queue[i];
    if (word == 0 || is_chunk(word)) continue;
    if (task_hop(word) != hop) {
      if (sum > 0) atomicAdd(edges + hop, sum);
      hop = task_hop(word), sum = 0;
    }
    sum += job.rows[i].count;
  }
  if (sum > 0) atomicAdd(edges + hop, sum);
  const uint32_t words = job.layout.group_words();
  for (int64_t group = first; group < ranks.groups; group += step) {
    const uint32_t* const known = job.known + group * words;
    for (uint32_t h = 0; h <= job.hops; ++h) {
      uint32_t found = 0;
      for (uint32_t w = 0; w < words; ++w) found += __popc(job.layout.first_met(known[w], h));
      ranks.sums[h * ranks.groups + group] = static_cast<int32_t>(found);
    }
  }
  if (first == 0) ranks.sums[(job.hops + 1) * ranks.groups] = 0;
  __syncthreads();
  const uint32_t h = threadIdx.x;
  if (h < kHops && edges[h] > 0) atomicAdd(job.control->hop_edges + h, edges[h]);
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    seat_kernel(const __grid_constant__ TaskJob<Id> job, const TaskRanks ranks) {
  if (job.control->faults != 0) return;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i <= job.hops) {
    job.control->known[i] = static_cast<uint32_t>(ranks.sums[(i + 1) * ranks.groups]);
  }
  if (i >= ranks.num_seeds) return;
  uint32_t met = 0;
  const int32_t rank = rank_of(job, ranks, ranks.seeds[i], met);
  ranks.seed_of[rank] = static_cast<int32_t>(i);
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    count_kernel(const __grid_constant__ TaskJob<Id> job, const TaskRanks ranks) {
  __shared__ Starts starts;
  if (job.control->faults != 0) return;
  const uint32_t n = queue_size(job), first = blockIdx.x * kThreads;
  if (first >= n && blockIdx.x > 0) return;
  find_starts(job, starts);
  if (blockIdx.x == 0 && threadIdx.x < job.hops) {
    const uint32_t h = threadIdx.x;
    const unsigned long long last = starts.rows[h + 1] - 1;
    if (last < static_cast<unsigned long long>(ranks.indptr_capacity)) {
      ranks.indptr[last] = -static_cast<int32_t>(job.control->hop_edges[h]);
    }
  }
  const uint32_t i = first + threadIdx.x;
  if (i >= n) return;
  const uint64_t word = job.queue[i];
  if (word == 0 || is_chunk(word)) return;
  const unsigned long long row =
      starts.rows[task_hop(word)] + local_id(job, ranks, task_vertex(word));
  if (row < static_cast<unsigned long long>(ranks.indptr_capacity)) {
    ranks.indptr[row] = static_cast<int32_t>(job.rows[i].count);
  }
}

// One thread per word of known vertices. Seeds keep their order.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    name_kernel(const __grid_constant__ TaskJob<Id> job, const TaskRanks ranks, Id* nodes) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < ranks.num_seeds) nodes[i] = static_cast<Id>(ranks.seeds[i]);
  const uint32_t width = 1u << job.layout.width_log2;
  if (i >= ranks.groups * job.layout.group_words()) return;
  uint32_t left = job.known[i];
  while (left != 0) {
    const uint32_t shift = (__ffs(left) - 1) / width * width;
    left &= ~((kAll >> (32 - width)) << shift);
    const int64_t vertex = i * (32 / width) + shift / width;
    uint32_t met = 0;
    const int32_t rank = rank_of(job, ranks, vertex, met);
    if (met > 0) nodes[rank] = static_cast<Id>(vertex);
  }
}

// `team` threads, a power of two up to 32, write a row.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    emit_kernel(const __grid_constant__ TaskJob<Id> job, const TaskRanks ranks,
                const __grid_constant__ TaskBlocks<Id> blocks, uint32_t team) {
  __shared__ Starts starts;
  const uint32_t n = queue_size(job), rows = kThreads / team, first = blockIdx.x * rows;
  if (first >= n) return;
  find_starts(job, starts);
  const uint32_t i = first + threadIdx.x / team;
  if (i >= n) return;
  const uint64_t word = job.queue[i];
  if (word == 0 || is_chunk(word)) return;
  const uint32_t hop = task_hop(word);
  const TaskRow result = job.rows[i];
  const int32_t to = ranks.indptr[starts.rows[hop] + local_id(job, ranks, task_vertex(word))];
  int32_t* const indices = blocks.indices[hop] + to;
  for (uint32_t e = threadIdx.x % team; e < result.count; e += team) {
    indices[e] = local_id(job, ranks, job.neighbors[result.out + e]);
    if (job.positions != nullptr) blocks.positions[hop][to + e] = job.positions[result.out + e];
  }
}

}  // namespace

template <class Id>
void pgsampler_local_ids(Launch launch, const TaskJob<Id>& job, const TaskRanks& ranks) {
  int device = 0, processors = 0;
  GNNBENCH_CUDA_CALL(launch, cudaGetDevice(&device));
  GNNBENCH_CUDA_CALL(launch,
                     cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  tally_kernel<Id><<<4 * processors, kThreads, 0, launch.stream>>>(job, ranks);
  GNNBENCH_CUDA_LAUNCHED(launch, "tally_kernel");
  exclusive_scan(launch, ranks.scratch, ranks.scratch_bytes, ranks.sums,
                 pgsampler_sums(ranks.groups, job.hops));
  seat_kernel<Id>
      <<<std::max<int64_t>(1, blocks_for(ranks.num_seeds, kThreads)), kThreads, 0, launch.stream>>>(
          job, ranks);
  GNNBENCH_CUDA_LAUNCHED(launch, "seat_kernel");
}

template <class Id>
void pgsampler_offsets(Launch launch, const TaskJob<Id>& job, const TaskRanks& ranks) {
  if (ranks.rows_may_miss) {
    GNNBENCH_CUDA_CALL(
        launch,
        cudaMemsetAsync(ranks.indptr, 0, ranks.indptr_capacity * sizeof(int32_t), launch.stream));
  }
  count_kernel<Id>
      <<<blocks_for(job.queue_capacity, kThreads), kThreads, 0, launch.stream>>>(job, ranks);
  GNNBENCH_CUDA_LAUNCHED(launch, "count_kernel");
  exclusive_scan(launch, ranks.scratch, ranks.scratch_bytes, ranks.indptr, ranks.indptr_capacity);
}

template <class Id>
void pgsampler_blocks(Launch launch, const TaskJob<Id>& job, const TaskRanks& ranks,
                      const TaskBlocks<Id>& blocks) {
  const int64_t named = std::max(ranks.groups * job.layout.group_words(), ranks.num_seeds);
  if (named > 0) {
    name_kernel<Id>
        <<<blocks_for(named, kThreads), kThreads, 0, launch.stream>>>(job, ranks, blocks.nodes);
    GNNBENCH_CUDA_LAUNCHED(launch, "name_kernel");
  }
  uint32_t widest = 1;
  for (uint32_t h = 0; h < job.hops; ++h) widest = std::max(widest, job.fanouts[h]);
  uint32_t team = 1;
  while (team < 32 && team < widest) team *= 2;
  emit_kernel<Id><<<blocks_for(job.queue_capacity, kThreads / team), kThreads, 0, launch.stream>>>(
      job, ranks, blocks, team);
  GNNBENCH_CUDA_LAUNCHED(launch, "emit_kernel");
}

#define GNNBENCH_TASK_BLOCKS_OF(Id)                                                    \
  template void pgsampler_local_ids<Id>(Launch, const TaskJob<Id>&, const TaskRanks&); \
  template void pgsampler_offsets<Id>(Launch, const TaskJob<Id>&, const TaskRanks&);   \
  template void pgsampler_blocks<Id>(Launch, const TaskJob<Id>&, const TaskRanks&,     \
                                     const TaskBlocks<Id>&)
GNNBENCH_TASK_BLOCKS_OF(int32_t);
GNNBENCH_TASK_BLOCKS_OF(int64_t);
#undef GNNBENCH_TASK_BLOCKS_OF

}  // namespace gnnbench::cuda
