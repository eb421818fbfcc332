// Algorithms 1 and 2 of PGSampler. Why no task is lost and nothing hangs: see kernel.cu, with a
// block as the worker.
#include <algorithm>

#include "cuda/common/atomics.cuh"
#include "cuda/pgsampler/published.h"
#include "cuda/pick/reservoir.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;  // DGL's block size; the paper prints none
constexpr int kSeedThreads = 256;

// A block's shared memory (Algorithm 1, lines 1 to 6).
struct SharedTasks {
  uint64_t tasks[32];
  uint32_t first;  // ticket
  uint32_t ready;  // tasks that can be drawn; 0: the block ends
  unsigned long long out;
};

// Slots of a reservoir at the final place of its edges.
template <class Id>
struct SlotsInPlace {
  Id* cols;

  __device__ uint32_t& operator[](uint32_t s) const {
    return *reinterpret_cast<uint32_t*>(cols + s);
  }
};

template <class Id>
struct TaskBlock {
  const PublishedJob<Id>& job;
  SharedTasks& shared;
  Block<kThreads> team;

  __device__ void fault(Fault which) const { report_fault(&job.control->faults, which); }

  // Algorithm 2 and lines 27 to 31 of Algorithm 1, by a thread. Returns false if the queue is full.
  __device__ bool push(int64_t vertex, uint32_t hop) const {
    uint32_t* const flag = job.known + hop * job.graph.num_nodes + vertex;
    if (load_relaxed(flag) != 0 || atomicOr(flag, 1u) != 0) return true;
    const uint32_t tail = tasks_enqueued(atomicAdd(&job.control->state, kOneEnqueued));
    if (tail >= job.queue_capacity) {
      fault(Fault::kTasksFull);
      return false;
    }
    store_relaxed(job.queue + tail, static_cast<unsigned long long>(task_word(vertex, hop)));
    return true;
  }

  // Draws one task by all threads, writes its edges and pushes the new tasks. Ends with a barrier.
  // Returns false to end the block.
  __device__ bool run(uint64_t task) const {
    const int64_t vertex = task_vertex(task);
    const uint32_t hop = task_hop(task), fanout = job.fanouts[hop];
    CscRow row{0, 0};
    if (!job.graph.read_row(vertex, row)) fault(Fault::kBadRow);
    const uint32_t count = min(row.degree, fanout);
    if (team.rank() == 0) {
      shared.out = atomicAdd(&job.control->edges[hop], static_cast<unsigned long long>(count));
    }
    team.sync();
    const HopArrays<Id> to = job.arrays[hop];
    const unsigned long long out = shared.out;
    if (out + count > to.capacity) {
      if (team.rank() == 0) fault(Fault::kEdgesFull);
      return false;
    }
    const SlotsInPlace<Id> slots{to.cols + out};
    const bool draws = row.degree > fanout;
    if (draws) {
      fill_slots(team, fanout, slots);
      team.sync();
      offer_row(Pick::kReservoir, team,
                Draws{job.key, static_cast<uint64_t>(vertex), hop, job.batch}, row.degree, fanout,
                slots);
      team.sync();
    }
    bool full = false;
    const bool last = hop + 1 == job.hops;
    for (uint32_t s = team.rank(); s < count; s += team.size()) {
      const int64_t at = row.begin + (draws ? slots[s] : s);
      const Id neighbor = job.graph.indices[at];
      to.rows[out + s] = static_cast<Id>(vertex);
      to.cols[out + s] = neighbor;
      if (to.positions != nullptr) to.positions[out + s] = at;
      if (!job.graph.has_node(neighbor)) {
        fault(Fault::kBadNeighbor);
      } else if (!last) {
        full |= !push(neighbor, hop + 1);
      }
    }
    // Section IV-B: a finished task's vertex is a destination of the next hop, too.
    if (team.rank() == 0 && !last) full |= !push(vertex, hop + 1);
    return !__syncthreads_or(full);
  }

  // Waits, by the first warp, until the first of `count` tickets has its task, and copies the tasks
  // that are ready, in order. Sets shared.ready to 0 when all work is done or a fault is set.
  __device__ void wait_for_tasks(uint32_t first, uint32_t count) const {
    const uint32_t lane = threadIdx.x;
    for (uint32_t polls = 0;; ++polls) {
      const bool looks = lane == 0 && polls % 4 == 0;
      bool stop = looks && load_relaxed(&job.control->faults) != 0;
      uint64_t word = 0;
      if (lane < count && first + lane < job.queue_capacity) {
        word = load_relaxed(job.queue + first + lane);
      }
      const uint32_t missing = ~__ballot_sync(kAllLanes, word != 0);
      const uint32_t ready = missing == 0 ? 32 : __ffs(missing) - 1;
      if (looks && word == 0) stop |= all_finished(load_relaxed(&job.control->state));
      stop = __shfl_sync(kAllLanes, stop, 0);
      if (stop || ready > 0) {
        shared.tasks[lane] = word;
        if (lane == 0) shared.ready = stop ? 0 : ready;
        return;
      }
      __nanosleep(100);
    }
  }
};

template <class Id>
__global__ void __launch_bounds__(kThreads)
    published_kernel(const __grid_constant__ PublishedJob<Id> job) {
  __shared__ SharedTasks shared;
  const TaskBlock<Id> block{job, shared, {}};
  uint32_t first = 0, count = 0, take = job.persistent ? 1 : job.fetch_size;
  for (;;) {
    if (count == 0) {
      if (threadIdx.x == 0) shared.first = atomicAdd(&job.control->head, take);
      __syncthreads();
      first = shared.first;
      count = take;
      take = job.fetch_size;
    }
    if (threadIdx.x < 32) block.wait_for_tasks(first, count);
    __syncthreads();
    const uint32_t ready = shared.ready;
    if (ready == 0) return;
    for (uint32_t i = 0; i < ready; ++i) {
      if (!block.run(shared.tasks[i])) return;
    }
    // Behind the barrier of the last task: its children count as enqueued before it as finished.
    if (threadIdx.x == 0) {
      atomicAdd(&job.control->state, static_cast<unsigned long long>(ready));
    }
    first += ready;
    count -= ready;
    if (count == 0 && !job.persistent) return;
  }
}

template <class Id>
__global__ void __launch_bounds__(kSeedThreads)
    published_seeds_kernel(const __grid_constant__ PublishedJob<Id> job, Vertices seeds,
                           int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSeedThreads + threadIdx.x;
  if (i == 0) job.control->state = static_cast<unsigned long long>(n) * kOneEnqueued;
  if (i >= n) return;
  const int64_t vertex = seeds[i];
  if (!job.graph.has_node(vertex)) return report_fault(&job.control->faults, Fault::kBadSeed);
  if (atomicOr(job.known + vertex, 1u) != 0) {
    report_fault(&job.control->faults, Fault::kRepeatedSeed);
  }
  job.queue[i] = task_word(vertex, 0);
}

}  // namespace

template <class Id>
void published_seeds(Launch launch, const PublishedJob<Id>& job, Vertices seeds, int64_t n) {
  if (n == 0) return;
  published_seeds_kernel<Id>
      <<<blocks_for(n, kSeedThreads), kSeedThreads, 0, launch.stream>>>(job, seeds, n);
  GNNBENCH_CUDA_LAUNCHED(launch, "published_seeds_kernel");
}

template <class Id>
void published_run(Launch launch, const PublishedJob<Id>& job) {
  int64_t blocks = blocks_for(job.queue_capacity, job.fetch_size);
  if (job.persistent) {
    int device = 0, processors = 0, resident = 0;
    GNNBENCH_CUDA_CALL(launch, cudaGetDevice(&device));
    GNNBENCH_CUDA_CALL(launch,
                       cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    GNNBENCH_CUDA_CALL(launch, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                   &resident, published_kernel<Id>, kThreads, 0));
    blocks = std::min(static_cast<int64_t>(processors) * resident,
                      static_cast<int64_t>(job.queue_capacity));
  }
  published_kernel<Id><<<static_cast<uint32_t>(blocks), kThreads, 0, launch.stream>>>(job);
  GNNBENCH_CUDA_LAUNCHED(launch, "published_kernel");
}

#define GNNBENCH_PUBLISHED_OF(Id)                                                        \
  template void published_seeds<Id>(Launch, const PublishedJob<Id>&, Vertices, int64_t); \
  template void published_run<Id>(Launch, const PublishedJob<Id>&)
GNNBENCH_PUBLISHED_OF(int32_t);
GNNBENCH_PUBLISHED_OF(int64_t);
#undef GNNBENCH_PUBLISHED_OF

}  // namespace gnnbench::cuda
