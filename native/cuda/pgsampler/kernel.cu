// PGSampler's sampling kernel. A worker, a warp or a block, takes up to 32 tickets of the queue at
// once, waits for their tasks, draws their rows together, and pushes the new tasks.
//
// Why no task is lost and nothing hangs:
// - A slot is published by the one store of its nonzero word (queue.cuh).
// - A worker that holds a ticket leaves only when every task enqueued is finished. Children are
//   counted as enqueued before their parent counts as finished, in one word of memory and by the
//   same lane or behind a barrier, so the two halves of that word are equal at no moment in
//   between.
// - A task's slot lies behind its parent's, and a worker works through its tickets in order. So the
//   first unfinished task is never waited for by the worker that holds it, and only workers that
//   run hold tickets: no block needs another one to be resident.
// - Every wait ends when a fault is set.
#include <algorithm>

#include "cuda/pgsampler/hubs.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kWarps = kWorkerThreads / 32;  // of a persistent block

template <class Id, class Team, Pick kOffers>
struct Worker : HubWorker<Id, Team, kOffers> {
  using HubWorker<Id, Team, kOffers>::job;
  using HubWorker<Id, Team, kOffers>::lane;
  using HubWorker<Id, Team, kOffers>::team;
  using HubWorker<Id, Team, kOffers>::held;

  // Samples the tasks of the first warp's lanes (0: none), from the slots starting at `slot`.
  // Returns false to end the worker.
  __device__ bool sample(uint64_t word, uint32_t slot, bool may_split) const {
    bool drawn = false, room = true;
    if (team.leads()) room = hold(word, slot, may_split, drawn);
    if (!team.all(room)) return false;
    this->draw_rows(drawn);
    return this->write_rows();
  }

  // Reads the rows of the tasks, reserves space for them and opens those to be split. `drawn` are
  // the remaining rows whose slots must be drawn. Called by a warp. Returns false if space runs
  // out.
  __device__ bool hold(uint64_t word, uint32_t slot, bool may_split, bool& drawn) const {
    const bool mine = word != 0;
    const uint32_t hop = mine ? task_hop(word) : 0, fanout = job.fanouts[hop];
    const int64_t vertex = mine ? task_vertex(word) : 0;
    CscRow row{0, 0};
    uint32_t count = 0;
    if (mine) {
      if (job.graph.read_row(vertex, row)) {
        count = pick_count(job.spec, row.begin, row.degree, fanout);
      } else {
        this->fault(Fault::kBadRow);
      }
    }
    drawn = count > 0 && !takes_all(this->pick(), row.degree, fanout);
    const bool split = Team::kSplits && may_split && drawn && this->pick() == Pick::kReservoir &&
                       row.degree - fanout > kChunkDraws;
    const bool thrice = this->pick() == Pick::kFisherYates && fanout > kSharedFanout && drawn;
    const uint32_t splits = __ballot_sync(kAllLanes, split);

    unsigned long long room = static_cast<unsigned long long>(count) * (thrice ? 3 : 1), sum = room;
#pragma unroll
    for (uint32_t d = 1; d < 32; d *= 2) {
      const unsigned long long other = __shfl_up_sync(kAllLanes, sum, d);
      if (lane >= d) sum += other;
    }
    const unsigned long long total = __shfl_sync(kAllLanes, sum, 31);
    unsigned long long base = 0;
    if (lane == 0 && total > 0) base = atomicAdd(&job.control->edges, total);
    base = __shfl_sync(kAllLanes, base, 0);
    if (base + total > job.edge_capacity) {
      if (lane == 0) this->fault(Fault::kEdgesFull);
      return false;
    }
    const uint32_t out = static_cast<uint32_t>(base + sum - room);
    __syncwarp();  // the previous rows are complete
    held.vertex[lane] = vertex;
    held.begin[lane] = row.begin;
    held.degree[lane] = row.degree;
    held.out[lane] = out;
    held.count[lane] = split ? 0 : count;
    held.hop[lane] = hop;
    if (mine) job.rows[slot + lane] = {out, split ? this->chunks_of(row.degree - fanout) : count};
    this->sum_up((split ? 0 : count) + (mine && hop + 1 < job.hops ? 1 : 0), held.first);
    for (uint32_t left = splits; left != 0; left &= left - 1) {
      const uint32_t which = __ffs(left) - 1;
      if (!this->open_split(which, slot + which)) return false;
    }
    drawn = drawn && !split;
    return true;
  }

  // Tickets of a warp.
  struct Tickets {
    uint32_t first;
    uint32_t count;
    uint32_t take;  // next batch of tickets
  };

  // Takes tickets if none is left and waits for the tasks of the first `ready` tickets, one word
  // per lane (other lanes: 0). Called by a warp. Returns false when all work is done.
  __device__ bool wait_for_tasks(Tickets& tickets, uint64_t& word, uint32_t& ready) const {
    if (tickets.count == 0) {
      if (lane == 0) tickets.first = atomicAdd(&job.control->head, tickets.take);
      tickets.first = __shfl_sync(kAllLanes, tickets.first, 0);
      tickets.count = tickets.take;
      tickets.take = job.fetch_size;
    }
    for (uint32_t polls = 0;; ++polls) {
      // Checks for the end less often than for the task, because all workers read the same word for
      // it.
      const bool looks = lane == 0 && polls % 4 == 0;
      bool stop = looks && this->faulty();
      word = 0;
      if (lane < tickets.count && tickets.first + lane < job.queue_capacity) {
        word = load_relaxed(job.queue + tickets.first + lane);
      }
      // Ready tasks, in order: a later one may wait for an earlier one.
      const uint32_t missing = ~__ballot_sync(kAllLanes, word != 0);
      ready = missing == 0 ? 32 : __ffs(missing) - 1;
      if (looks && word == 0) stop |= all_finished(load_relaxed(&job.control->state));
      if (__shfl_sync(kAllLanes, stop, 0)) return false;
      if (ready > 0) return true;
      __nanosleep(100);
    }
  }

  // Takes tickets, first `take` of them, until all work is done or, with `once`, these are
  // finished.
  __device__ void run(bool once, uint32_t take) const {
    Tickets tickets{0, 0, take};
    for (;;) {
      uint64_t word = 0;
      uint32_t ready = 0;  // in a block 0 except in its first warp, as are the words
      const bool stop = team.leads() && !wait_for_tasks(tickets, word, ready);
      if (team.any(stop)) return;
      const bool plain = lane < ready && !is_chunk(word);
      if (team.any(plain) && !sample(plain ? word : 0, tickets.first, job.split_hubs)) return;
      if constexpr (Team::kSplits) {
        const bool chunk = lane < ready && is_chunk(word);
        for (uint32_t left = __ballot_sync(kAllLanes, chunk); left != 0; left &= left - 1) {
          __syncwarp();  // the previous rows are complete
          if (!this->run_chunk(__shfl_sync(kAllLanes, word, __ffs(left) - 1))) return;
        }
      }
      if (team.rank() == 0) atomicAdd(&job.control->state, static_cast<unsigned long long>(ready));
      tickets.first += ready;
      tickets.count -= ready;
      const bool ends = once && team.leads() && tickets.count == 0;
      if (once && team.any(ends)) return;
    }
  }

  // Algorithm 1 as printed; a block is one warp. The tail moves before the slot is written, a slot
  // is read whether it was written or not, and a block that leaves drops indices that no other
  // takes.
  __device__ void run_as_printed() const {
    uint32_t index = blockIdx.x, take = 1;
    unsigned long long state = 0;
    if (lane == 0) state = load_relaxed(&job.control->state);
    uint32_t tail = __shfl_sync(kAllLanes, tasks_enqueued(state), 0);
    while (index < tail) {
      const bool reads = lane < take && index + lane < job.queue_capacity;
      const uint64_t word = reads ? load_relaxed(job.queue + index + lane) : 0;
      const uint32_t read = __popc(__ballot_sync(kAllLanes, reads && word != 0));
      const uint32_t stale = __popc(__ballot_sync(kAllLanes, reads && word == 0));
      if (lane == 0 && stale > 0) atomicAdd(&job.control->stale, stale);
      if (read > 0 && !sample(word, index, false)) return;
      if (lane == 0) {
        atomicAdd(&job.control->state, static_cast<unsigned long long>(read));
        index = atomicAdd(&job.control->head, job.fetch_size);
        tail = this->faulty() ? 0 : tasks_enqueued(load_relaxed(&job.control->state));
      }
      index = __shfl_sync(kAllLanes, index, 0);
      tail = __shfl_sync(kAllLanes, tail, 0);
      take = job.fetch_size;
    }
  }
};

constexpr bool has_large_blocks(TaskSchedule schedule) {
  return schedule == TaskSchedule::kPersistent || schedule == TaskSchedule::kNonPersistent;
}

constexpr int warps_of(TaskSchedule schedule) { return has_large_blocks(schedule) ? kWarps : 1; }

// Minimum resident blocks per multiprocessor: 40 warps at 48 registers, or as many as fit.
constexpr int blocks_of(TaskSchedule schedule) {
  return has_large_blocks(schedule) ? 40 / kWarps : 32;
}

// Shared memory of a block: Held of each worker, then slots of each worker.
template <class Id, TaskSchedule kSchedule, TaskWorker kWorker, Pick kOffers>
__global__ void __launch_bounds__(32 * warps_of(kSchedule), blocks_of(kSchedule))
    tasks_kernel(const __grid_constant__ TaskJob<Id> job, uint32_t stride) {
  // Algorithm 1 begins with one task.
  constexpr bool kOnce =
      kSchedule == TaskSchedule::kFusion || kSchedule == TaskSchedule::kNonPersistent;
  const uint32_t take = kSchedule == TaskSchedule::kNonPersistent ? job.fetch_size : 1;
  extern __shared__ __align__(16) unsigned char memory[];
  Held* const held = reinterpret_cast<Held*>(memory);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if constexpr (kWorker == TaskWorker::kBlock) {
    uint32_t* const slots = reinterpret_cast<uint32_t*>(held + 1);
    const Worker<Id, OneBlock, kOffers> worker{{{{job, lane}, OneBlock{}, *held, slots, stride}}};
    worker.run(kOnce, take);
  } else {
    uint32_t* const slots = reinterpret_cast<uint32_t*>(held + blockDim.x / 32);
    const Worker<Id, OneWarp, kOffers> worker{
        {{{job, lane}, OneWarp{lane}, held[warp], slots + warp * job.fetch_size * stride, stride}}};
    if constexpr (kSchedule == TaskSchedule::kAsPrinted) {
      worker.run_as_printed();
    } else {
      worker.run(kOnce, take);
    }
  }
}

template <class Id, TaskSchedule kSchedule, TaskWorker kWorker = TaskWorker::kWarp>
void launch_tasks(Launch launch, const TaskJob<Id>& job, uint32_t stride) {
  const auto kernel = job.spec.pick == Pick::kReservoirThinned
                          ? tasks_kernel<Id, kSchedule, kWorker, Pick::kReservoirThinned>
                          : tasks_kernel<Id, kSchedule, kWorker, Pick::kReservoir>;
  const int warps = warps_of(kSchedule), workers = kWorker == TaskWorker::kBlock ? 1 : warps;
  const size_t bytes = workers * (sizeof(Held) + job.fetch_size * stride * sizeof(uint32_t));
  if (bytes > 48 * 1024) {
    GNNBENCH_CUDA_CALL(launch,
                       cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes)));
  }
  int64_t blocks = job.queue_capacity;
  if constexpr (kSchedule == TaskSchedule::kNonPersistent) {
    blocks = blocks_for(job.queue_capacity, workers * static_cast<int64_t>(job.fetch_size));
  } else if constexpr (kSchedule != TaskSchedule::kFusion) {
    int device = 0, processors = 0, resident = 0;
    GNNBENCH_CUDA_CALL(launch, cudaGetDevice(&device));
    GNNBENCH_CUDA_CALL(launch,
                       cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    GNNBENCH_CUDA_CALL(launch, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel,
                                                                             warps * 32, bytes));
    blocks = std::min(static_cast<int64_t>(processors) * resident,
                      blocks_for(job.queue_capacity, workers));  // at most one worker per task
  }
  if constexpr (kSchedule == TaskSchedule::kAsPrinted) {
    // Each block owns the index equal to its number; the next index to take follows them.
    const uint32_t head = static_cast<uint32_t>(blocks);
    GNNBENCH_CUDA_CALL(launch, cudaMemcpyAsync(&job.control->head, &head, sizeof(head),
                                               cudaMemcpyHostToDevice, launch.stream));
  }
  kernel<<<static_cast<uint32_t>(blocks), warps * 32, bytes, launch.stream>>>(job, stride);
  GNNBENCH_CUDA_LAUNCHED(launch, "tasks_kernel");
}

}  // namespace

template <class Id>
void pgsampler_run(Launch launch, const TaskJob<Id>& job, TaskSchedule schedule,
                   TaskWorker worker) {
  uint32_t stride = 1;
  for (uint32_t h = 0; h < job.hops; ++h) {
    const uint32_t fanout = job.fanouts[h];
    if (fanout <= kSharedFanout && fanout > stride) stride = fanout;
  }
  if (job.spec.pick == Pick::kFisherYates) stride *= 3;
  stride |= 1;  // avoids bank conflicts between lanes
  using enum TaskSchedule;
  if (worker == TaskWorker::kBlock) {
    return schedule == kPersistent
               ? launch_tasks<Id, kPersistent, TaskWorker::kBlock>(launch, job, stride)
               : launch_tasks<Id, kNonPersistent, TaskWorker::kBlock>(launch, job, stride);
  }
  switch (schedule) {
    case kPersistent: return launch_tasks<Id, kPersistent>(launch, job, stride);
    case kFusion: return launch_tasks<Id, kFusion>(launch, job, stride);
    case kNonPersistent: return launch_tasks<Id, kNonPersistent>(launch, job, stride);
    case kAsPrinted: return launch_tasks<Id, kAsPrinted>(launch, job, stride);
  }
}

template void pgsampler_run<int32_t>(Launch, const TaskJob<int32_t>&, TaskSchedule, TaskWorker);
template void pgsampler_run<int64_t>(Launch, const TaskJob<int64_t>&, TaskSchedule, TaskWorker);

}  // namespace gnnbench::cuda
