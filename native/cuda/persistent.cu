// PGSampler's sampling kernel. A worker is a warp: it takes tickets of the queue, up to 32 at once,
// waits for their tasks, draws their rows together, and pushes the tasks that they make.
//
// Why nothing is lost and nothing hangs:
// - A slot is published by the one store of its nonzero word, so a reader never sees half a task.
// - A worker that holds a ticket leaves only when every task enqueued is finished. Children are
//   counted as enqueued before their parent counts as finished, by the same lane in one word of
//   memory, so the two halves of that word are equal at no moment in between.
// - A task's slot lies behind its parent's, and a worker works through its tickets in order. So the
//   first unfinished task is never waited for by the worker that holds it, and only workers that
//   run hold tickets: no block needs another one to be resident.
// - Every wait ends when a fault is up.
#include <algorithm>
#include <cuda/atomic>

#include "cuda/persistent.h"

namespace gnnbench::cuda {
namespace {

constexpr uint32_t kAll = 0xFFFFFFFFu;
constexpr int kWorkers = 4;             // warps of a persistent block
constexpr uint32_t kSharedFanout = 64;  // rows of larger fanouts keep their slots in `neighbors`
constexpr int kThreads = 256;

template <class T>
using Shared = ::cuda::atomic_ref<T, ::cuda::thread_scope_device>;

template <class T>
__device__ __forceinline__ T load_now(T& value) {
  return Shared<T>(value).load(::cuda::std::memory_order_relaxed);
}

// The tasks that a warp draws together, one a lane.
struct Held {
  int64_t vertex[32];
  int64_t begin[32];  // of its row in graph.indices
  uint32_t degree[32];
  uint32_t out[32];     // of its result in job.neighbors
  uint32_t count[32];   // edges to write now
  uint32_t first[33];   // pairs before it: its edges and, unless the hop is the last, itself
  uint32_t blocks[33];  // Philox blocks before its own, of a reservoir
  uint32_t hop[32];
};

// A row's drawn positions: in shared memory, or where its neighbours will be, one per id.
struct Slots {
  uint32_t* at;
  uint32_t step;

  __device__ uint32_t& operator[](uint32_t s) const { return at[s * step]; }
};

template <class Id>
struct Worker {
  const TaskJob<Id>& job;
  Held& held;
  uint32_t* shared;  // fetch_size x stride words
  uint32_t stride;
  uint32_t lane;

  __device__ void fault(uint32_t which) const { atomicOr(&job.control->fault, which); }

  __device__ bool faulty() const { return load_now(job.control->fault) != 0; }

  __device__ Slots slots_of(uint32_t row, uint32_t fanout) const {
    if (fanout <= kSharedFanout) return {shared + row * stride, 1};
    return {reinterpret_cast<uint32_t*>(job.neighbors + held.out[row]), sizeof(Id) / 4};
  }

  __device__ Draws draws_of(uint32_t row) const {
    return Draws{job.key, static_cast<uint64_t>(held.vertex[row]), held.hop[row], job.batch};
  }

  // Lane 0 counts `n` more tasks as enqueued; all lanes get the first slot, or kAll where the queue
  // is full.
  __device__ uint32_t reserve_tasks(uint32_t n) const {
    unsigned long long state = 0;
    if (lane == 0) state = atomicAdd(&job.control->state, n * kOneEnqueued);
    const uint32_t tail = __shfl_sync(kAll, tasks_enqueued(state), 0);
    if (tail < job.queue_capacity && n <= job.queue_capacity - tail) return tail;
    if (lane == 0) fault(kTaskQueueFull);
    return kAll;
  }

  __device__ void publish(uint32_t slot, uint64_t word) const {
    Shared<unsigned long long>(job.queue[slot]).store(word, ::cuda::std::memory_order_relaxed);
  }

  // Vertices that became sources of `hop`, one a lane (or none): those not met before go to
  // `nodes`, new tasks into the queue. Algorithm 2: look first, then an atomic or.
  __device__ bool meet(bool any, int64_t vertex, uint32_t hop) const {
    bool found = false, fresh = false;
    if (any) {
      const bool last = hop + 1 == job.hops;
      uint32_t& word = job.known[job.layout.word(vertex)];
      const uint32_t shift = job.layout.shift(vertex), bit = 1u << (hop + 1);
      uint32_t bits = job.layout.bits(load_now(word), shift);
      // A source of the last hop has no task: whether the vertex was met at all is what counts.
      if (last ? bits == 0 : (bits & bit) == 0) {
        bits = job.layout.bits(atomicOr(&word, bit << shift), shift);
        found = bits == 0;
        fresh = !last && (bits & bit) == 0;
      }
    }
    const uint32_t before = (1u << lane) - 1;
    const uint32_t founds = __ballot_sync(kAll, found), tasks = __ballot_sync(kAll, fresh);
    if (founds != 0) {
      uint32_t at = 0;
      if (lane == 0) at = atomicAdd(&job.control->nodes, __popc(founds));
      at = __shfl_sync(kAll, at, 0) + __popc(founds & before);
      const bool full = at >= job.node_capacity;
      if (found && full) fault(kTaskNodesFull);
      if (found && !full) job.nodes[at] = static_cast<Id>(vertex);
      if (__any_sync(kAll, found && full)) return false;
    }
    if (tasks != 0) {
      const uint32_t tail = reserve_tasks(__popc(tasks));
      if (tail == kAll) return false;
      if (fresh) publish(tail + __popc(tasks & before), task_word(vertex, hop + 1));
    }
    return true;
  }

  // Algorithm R in parallel: a slot keeps the largest position that drew it, the last writer of the
  // sequential loop. The four draws of block `b` that are below `end`.
  __device__ void offer(const Draws& draws, uint32_t fanout, uint32_t b, uint32_t end,
                        Slots slots) const {
    const Philox4 words = draws.block(b);
    const uint32_t word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t draw = 4 * b + k;
      if (draw >= end) continue;
      const uint32_t slot = bounded(word[k], fanout + draw + 1);
      if (slot < fanout) atomicMax(&slots[slot], fanout + draw);
    }
  }

  // Reservoirs of all held rows together, so that short rows share the lanes.
  __device__ void draw_reservoirs(bool drawn) const {
    const uint32_t fanout = job.fanouts[held.hop[lane]];
    sum_up(drawn ? (held.degree[lane] - fanout + 3) / 4 : 0, held.blocks);
    for (uint32_t p = lane, row = 0; p < held.first[32]; p += 32) {
      row = row_of(p, held.first, row);
      const uint32_t s = p - held.first[row];
      const bool has_slot = held.blocks[row] < held.blocks[row + 1] && s < held.count[row];
      if (has_slot) slots_of(row, held.count[row])[s] = s;
    }
    __syncwarp();
    for (uint32_t p = lane, row = 0; p < held.blocks[32]; p += 32) {
      row = row_of(p, held.blocks, row);
      const uint32_t count = held.count[row];  // the fanout
      offer(draws_of(row), count, p - held.blocks[row], held.degree[row] - count,
            slots_of(row, count));
    }
  }

  // pick_floyd with all lanes looking for a repeated value.
  __device__ void draw_floyd(uint32_t row, uint32_t fanout) const {
    const Slots slots = slots_of(row, fanout);
    const Draws draws = draws_of(row);
    for (uint32_t s = 0; s < fanout; ++s) {
      const uint32_t j = held.degree[row] - fanout + s;
      uint32_t value = bounded(draws(s), j + 1);
      bool repeated = false;
      for (uint32_t t = lane; t < s; t += 32) repeated |= slots[t] == value;
      if (__any_sync(kAll, repeated)) value = j;
      if (lane == 0) slots[s] = value;
      __syncwarp();
    }
  }

  // pick_fisher_yates with all lanes looking for the latest move of an entry. The row has room for
  // 3 fanout slots.
  __device__ void draw_fisher_yates(uint32_t row, uint32_t fanout) const {
    const Slots out = slots_of(row, fanout);
    const Slots moved{out.at + static_cast<size_t>(fanout) * out.step, out.step};
    const Slots filler{moved.at + static_cast<size_t>(fanout) * out.step, out.step};
    const Draws draws = draws_of(row);
    for (uint32_t s = 0; s < fanout; ++s) {
      const uint32_t last = held.degree[row] - 1 - s;
      const uint32_t at = bounded(draws(s), held.degree[row] - s);
      uint32_t of_at = 0, of_last = 0;  // 1 + the latest move, 0: none
      for (uint32_t t = lane; t < s; t += 32) {
        if (moved[t] == at) of_at = t + 1;
        if (moved[t] == last) of_last = t + 1;
      }
      of_at = __reduce_max_sync(kAll, of_at);
      of_last = __reduce_max_sync(kAll, of_last);
      if (lane == 0) {
        out[s] = of_at == 0 ? at : filler[of_at - 1];
        filler[s] = of_last == 0 ? last : filler[of_last - 1];
        moved[s] = at;
      }
      __syncwarp();
    }
  }

  // Fills the slots of the held rows whose draws depend on one another.
  __device__ void draw_rows(bool drawn) const {
    const Pick pick = job.spec.pick;
    if (!without_replacement(pick)) return;
    if (pick == Pick::kReservoir) {
      draw_reservoirs(drawn);
    } else {
      // Where the fanout is small a lane draws its own row.
      const uint32_t fanout = job.fanouts[held.hop[lane]];
      const bool alone = drawn && fanout <= kSharedFanout;
      if (alone) {
        uint32_t* out = shared + lane * stride;
        pick_row(job.spec, held.begin[lane], held.degree[lane], fanout, draws_of(lane), out,
                 out + fanout);
      }
      for (uint32_t left = __ballot_sync(kAll, drawn && !alone); left != 0; left &= left - 1) {
        const uint32_t row = __ffs(left) - 1;
        if (pick == Pick::kFloyd) {
          draw_floyd(row, job.fanouts[held.hop[row]]);
        } else {
          draw_fisher_yates(row, job.fanouts[held.hop[row]]);
        }
      }
    }
    __syncwarp();
  }

  // Position in its row that edge `s` of a held row takes.
  __device__ uint32_t position_of(uint32_t row, uint32_t s) const {
    const uint32_t degree = held.degree[row], fanout = job.fanouts[held.hop[row]];
    if (takes_all(job.spec.pick, degree, fanout)) return s;
    if (without_replacement(job.spec.pick)) return slots_of(row, fanout)[s];
    // Draws with replacement do not depend on one another: edge s alone, by its own draws.
    const Draws draws = draws_of(row);
    const uint32_t each = job.spec.pick == Pick::kWithReplacement ? 1 : 2;
    uint32_t position = 0;
    const auto own = [&](uint32_t d) { return draws(each * s + d); };
    pick_row(job.spec, held.begin[row], degree, 1, own, &position, &position);
    return position;
  }

  // The row of pair (or block) `p`, at or behind `row`: the one whose items hold it.
  static __device__ uint32_t row_of(uint32_t p, const uint32_t (&first)[33], uint32_t row) {
    while (first[row + 1] <= p) ++row;
    return row;
  }

  // Writes the edges of the held rows and pushes their tasks.
  __device__ bool write_rows() const {
    const uint32_t pairs = held.first[32];
    for (uint32_t from = 0, row = 0; from < pairs; from += 32) {
      const uint32_t p = from + lane;
      bool any = p < pairs;
      int64_t vertex = 0;
      uint32_t hop = 0;
      if (any) {
        row = row_of(p, held.first, row);
        const uint32_t s = p - held.first[row];
        hop = held.hop[row];
        if (s == held.count[row]) {
          vertex = held.vertex[row];  // a finished task's vertex goes on to the next hop
        } else {
          const uint32_t position = position_of(row, s);
          const int64_t at = held.begin[row] + position;
          any = position < held.degree[row];
          if (!any) {
            fault(kTaskBadTables);
          } else {
            const Id neighbor = job.graph.indices[at];
            job.neighbors[held.out[row] + s] = neighbor;
            if (job.positions != nullptr) job.positions[held.out[row] + s] = at;
            vertex = neighbor;
            any = vertex >= 0 && vertex < job.graph.num_nodes;
            if (!any) fault(kTaskBadIndices);
          }
        }
      }
      if (!meet(any, vertex, hop)) return false;
    }
    return true;
  }

  // Sums of the lanes' numbers, each without its own; the total last.
  __device__ void sum_up(uint32_t own, uint32_t (&sums)[33]) const {
    uint32_t sum = own;
#pragma unroll
    for (uint32_t d = 1; d < 32; d *= 2) {
      const uint32_t other = __shfl_up_sync(kAll, sum, d);
      if (lane >= d) sum += other;
    }
    sums[lane + 1] = sum;
    if (lane == 0) sums[0] = 0;
    __syncwarp();
  }

  // Samples the lanes' tasks (0: none) of the slots from `slot` on. False ends the worker.
  __device__ bool sample(uint64_t word, uint32_t slot, bool may_split) const {
    const bool mine = word != 0;
    const uint32_t hop = mine ? task_hop(word) : 0, fanout = job.fanouts[hop];
    const int64_t vertex = mine ? task_vertex(word) : 0;
    int64_t begin = 0;
    uint32_t degree = 0, count = 0;
    if (mine) {
      begin = job.graph.indptr[vertex];
      const int64_t end = job.graph.indptr[vertex + 1];
      if (begin < 0 || end < begin || end > job.graph.num_edges || end - begin > UINT32_MAX) {
        fault(kTaskBadIndptr);
        begin = 0;
      } else {
        degree = static_cast<uint32_t>(end - begin);
        count = pick_count(job.spec, begin, degree, fanout);
      }
    }
    const bool drawn = count > 0 && !takes_all(job.spec.pick, degree, fanout);
    const bool split =
        may_split && drawn && job.spec.pick == Pick::kReservoir && degree - fanout > kChunkDraws;
    const bool thrice = job.spec.pick == Pick::kFisherYates && fanout > kSharedFanout && drawn;
    const uint32_t splits = __ballot_sync(kAll, split);

    unsigned long long room = static_cast<unsigned long long>(count) * (thrice ? 3 : 1), sum = room;
#pragma unroll
    for (uint32_t d = 1; d < 32; d *= 2) {
      const unsigned long long other = __shfl_up_sync(kAll, sum, d);
      if (lane >= d) sum += other;
    }
    const unsigned long long total = __shfl_sync(kAll, sum, 31);
    unsigned long long base = 0;
    if (lane == 0 && total > 0) base = atomicAdd(&job.control->edges, total);
    base = __shfl_sync(kAll, base, 0);
    if (base + total > job.edge_capacity) {
      if (lane == 0) fault(kTaskEdgesFull);
      return false;
    }
    const uint32_t out = static_cast<uint32_t>(base + sum - room);
    __syncwarp();  // the rows held before are done with
    held.vertex[lane] = vertex;
    held.begin[lane] = begin;
    held.degree[lane] = degree;
    held.out[lane] = out;
    held.count[lane] = split ? 0 : count;
    held.hop[lane] = hop;
    if (mine) job.rows[slot + lane] = {out, split ? chunks_of(degree - fanout) : count};
    sum_up((split ? 0 : count) + (mine && hop + 1 < job.hops ? 1 : 0), held.first);
    for (uint32_t left = splits; left != 0; left &= left - 1) {
      const uint32_t row = __ffs(left) - 1;
      if (!open_split(row, slot + row)) return false;
    }
    draw_rows(drawn && !split);
    return write_rows();
  }

  static __device__ uint32_t chunks_of(uint32_t draws) { return (draws - 1) / kChunkDraws + 1; }

  __device__ Slots split_slots(uint32_t out) const {
    return {reinterpret_cast<uint32_t*>(job.neighbors + out), sizeof(Id) / 4};
  }

  // A long row becomes tasks of its own, so that all workers share its draws: not in the paper.
  __device__ bool open_split(uint32_t row, uint32_t slot) const {
    const uint32_t fanout = job.fanouts[held.hop[row]];
    const uint32_t chunks = chunks_of(held.degree[row] - fanout);
    const Slots slots = split_slots(held.out[row]);
    for (uint32_t s = lane; s < fanout; s += 32) slots[s] = s;
    const uint32_t tail = reserve_tasks(chunks);
    if (tail == kAll) return false;
    if (lane == 0) atomicAdd(&job.control->chunks, chunks);
    __syncwarp();
    __threadfence();  // the slots and the row are there before the first chunk is published
    for (uint32_t c = lane; c < chunks; c += 32) publish(tail + c, chunk_word(c, slot));
    return true;
  }

  // One chunk of a split row; the last one to finish writes the row's edges.
  __device__ bool run_chunk(uint64_t word) const {
    __threadfence();  // after the word was read: see open_split
    const uint32_t slot = chunk_slot(word);
    TaskRow& row = job.rows[slot];
    const uint64_t task = load_now(job.queue[slot]);
    const int64_t vertex = task_vertex(task);
    const uint32_t hop = task_hop(task), fanout = job.fanouts[hop], out = load_now(row.out);
    const int64_t begin = job.graph.indptr[vertex];
    const uint32_t degree = static_cast<uint32_t>(job.graph.indptr[vertex + 1] - begin);
    const uint32_t first = chunk_of(word) * kChunkDraws, draws = degree - fanout;
    const Slots slots = split_slots(out);
    const uint32_t end = draws - first > kChunkDraws ? first + kChunkDraws : draws;
    for (uint32_t b = first / 4 + lane; b < (end + 3) / 4; b += 32) {
      offer(Draws{job.key, static_cast<uint64_t>(vertex), hop, job.batch}, fanout, b, end, slots);
    }
    __syncwarp();
    __threadfence();
    uint32_t left = 0;
    if (lane == 0) left = atomicSub(&row.count, 1u);
    if (__shfl_sync(kAll, left, 0) != 1) return true;
    __syncwarp();
    __threadfence();  // the other chunks' offers
    if (lane == 0) row.count = fanout;
    held.vertex[lane] = vertex;
    held.begin[lane] = begin;
    held.degree[lane] = degree;
    held.out[lane] = out;
    held.count[lane] = lane == 0 ? fanout : 0;
    held.hop[lane] = hop;
    sum_up(lane == 0 ? fanout : 0, held.first);
    if (fanout <= kSharedFanout) {  // to where write_rows() looks for them
      for (uint32_t s = lane; s < fanout; s += 32) shared[s] = load_now(slots[s]);
      __syncwarp();
    }
    return write_rows();
  }

  // Takes tickets until all is done, or with `once` one ticket.
  __device__ void run(bool once) const {
    uint32_t ticket = 0, tickets = 0, take = 1;  // Algorithm 1 begins with one task
    for (;;) {
      if (tickets == 0) {
        if (lane == 0) ticket = atomicAdd(&job.control->head, take);
        ticket = __shfl_sync(kAll, ticket, 0);
        tickets = take;
        take = job.fetch_size;
      }
      uint64_t word = 0;
      uint32_t ready = 0;
      for (uint32_t polls = 0;; ++polls) {
        // The end is looked for less often than the task: all look at the same word for it.
        const bool looks = lane == 0 && polls % 4 == 0;
        bool stop = looks && faulty();
        word = 0;
        if (lane < tickets && ticket + lane < job.queue_capacity) {
          word = load_now(job.queue[ticket + lane]);
        }
        // Those that are there, in order: one of the later may wait for one of the earlier.
        const uint32_t missing = ~__ballot_sync(kAll, word != 0);
        ready = missing == 0 ? 32 : __ffs(missing) - 1;
        if (looks && word == 0) stop |= all_finished(load_now(job.control->state));
        if (__shfl_sync(kAll, stop, 0)) return;
        if (ready > 0) break;
        __nanosleep(100);
      }
      const bool plain = lane < ready && !is_chunk(word);
      const bool chunk = lane < ready && is_chunk(word);
      if (__any_sync(kAll, plain) && !sample(plain ? word : 0, ticket, true)) return;
      for (uint32_t left = __ballot_sync(kAll, chunk); left != 0; left &= left - 1) {
        __syncwarp();  // the rows held before are done with
        if (!run_chunk(__shfl_sync(kAll, word, __ffs(left) - 1))) return;
      }
      if (lane == 0) atomicAdd(&job.control->state, static_cast<unsigned long long>(ready));
      if (once) return;
      ticket += ready;
      tickets -= ready;
    }
  }

  // Algorithm 1 as printed; a block is one warp. The tail moves before the slot is written, a slot
  // is read whether or not it was, and a block leaves with indices that nobody else will take.
  __device__ void run_as_printed() const {
    uint32_t index = blockIdx.x, take = 1;
    unsigned long long state = 0;
    if (lane == 0) state = load_now(job.control->state);
    uint32_t tail = __shfl_sync(kAll, tasks_enqueued(state), 0);
    while (index < tail) {
      const bool reads = lane < take && index + lane < job.queue_capacity;
      const uint64_t word = reads ? load_now(job.queue[index + lane]) : 0;
      const uint32_t read = __popc(__ballot_sync(kAll, reads && word != 0));
      const uint32_t stale = __popc(__ballot_sync(kAll, reads && word == 0));
      if (lane == 0 && stale > 0) atomicAdd(&job.control->stale, stale);
      if (read > 0 && !sample(word, index, false)) return;
      if (lane == 0) {
        atomicAdd(&job.control->state, static_cast<unsigned long long>(read));
        index = atomicAdd(&job.control->head, job.fetch_size);
        tail = faulty() ? 0 : tasks_enqueued(load_now(job.control->state));
      }
      index = __shfl_sync(kAll, index, 0);
      tail = __shfl_sync(kAll, tail, 0);
      take = job.fetch_size;
    }
  }
};

constexpr int warps_of(TaskSchedule schedule) {
  return schedule == TaskSchedule::kPersistent ? kWorkers : 1;
}

// Blocks that are to fit a multiprocessor: 40 warps at 48 registers, or all the blocks it can hold.
constexpr int blocks_of(TaskSchedule schedule) {
  return schedule == TaskSchedule::kPersistent ? 40 / kWorkers : 32;
}

// Shared memory of a block: Held of each warp, then slots of each warp.
template <class Id, TaskSchedule kSchedule>
__global__ void __launch_bounds__(32 * warps_of(kSchedule), blocks_of(kSchedule))
    tasks_kernel(const __grid_constant__ TaskJob<Id> job, uint32_t stride) {
  extern __shared__ __align__(16) unsigned char memory[];
  const uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32;
  Held* held = reinterpret_cast<Held*>(memory);
  uint32_t* slots = reinterpret_cast<uint32_t*>(held + warps);
  const Worker<Id> worker{job, held[warp], slots + warp * job.fetch_size * stride, stride,
                          threadIdx.x % 32};
  if constexpr (kSchedule == TaskSchedule::kAsPrinted) {
    worker.run_as_printed();
  } else {
    worker.run(kSchedule == TaskSchedule::kFusion);
  }
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    seeds_kernel(const __grid_constant__ TaskJob<Id> job, Vertices seeds, int64_t n,
                 int32_t* local_of, Id* src_nodes) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i == 0) {
    job.control->state = static_cast<unsigned long long>(n) * kOneEnqueued;
    job.control->found[0] = static_cast<uint32_t>(n);
  }
  if (i >= n) return;
  const int64_t vertex = seeds[i];
  if (vertex < 0 || vertex >= job.graph.num_nodes) {
    atomicOr(&job.control->fault, static_cast<uint32_t>(kTaskBadSeed));
    return;
  }
  const uint32_t shift = job.layout.shift(vertex);
  const uint32_t before = atomicOr(job.known + job.layout.word(vertex), 1u << shift);
  if (job.layout.bits(before, shift) != 0) {
    atomicOr(&job.control->fault, static_cast<uint32_t>(kTaskRepeatedSeed));
  }
  job.queue[i] = task_word(vertex, 0);
  local_of[vertex] = static_cast<int32_t>(i);
  src_nodes[i] = static_cast<Id>(vertex);
}

template <class Id, TaskSchedule kSchedule>
void launch_tasks(Launch launch, const TaskJob<Id>& job, uint32_t stride) {
  const auto kernel = tasks_kernel<Id, kSchedule>;
  const int warps = warps_of(kSchedule);
  const size_t bytes = warps * (sizeof(Held) + job.fetch_size * stride * sizeof(uint32_t));
  if (bytes > 48 * 1024) {
    GNNBENCH_CUDA_CALL(launch,
                       cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes)));
  }
  int64_t blocks = job.queue_capacity;
  if (kSchedule != TaskSchedule::kFusion) {
    int device = 0, processors = 0, resident = 0;
    GNNBENCH_CUDA_CALL(launch, cudaGetDevice(&device));
    GNNBENCH_CUDA_CALL(launch,
                       cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    GNNBENCH_CUDA_CALL(launch, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel,
                                                                             warps * 32, bytes));
    blocks = std::min(static_cast<int64_t>(processors) * resident,
                      blocks_for(job.queue_capacity, warps));  // no more workers than tasks
  }
  if constexpr (kSchedule == TaskSchedule::kAsPrinted) {
    // Each block owns the index of its number; the next one to take is behind them.
    const uint32_t head = static_cast<uint32_t>(blocks);
    GNNBENCH_CUDA_CALL(launch, cudaMemcpyAsync(&job.control->head, &head, sizeof(head),
                                               cudaMemcpyHostToDevice, launch.stream));
  }
  kernel<<<static_cast<uint32_t>(blocks), warps * 32, bytes, launch.stream>>>(job, stride);
  GNNBENCH_CUDA_LAUNCHED(launch, "tasks_kernel");
}

}  // namespace

template <class Id>
void task_seeds(Launch launch, const TaskJob<Id>& job, Vertices seeds, int64_t n, int32_t* local_of,
                Id* src_nodes) {
  if (n == 0) return;
  seeds_kernel<Id>
      <<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(job, seeds, n, local_of, src_nodes);
  GNNBENCH_CUDA_LAUNCHED(launch, "seeds_kernel");
}

template <class Id>
void run_tasks(Launch launch, const TaskJob<Id>& job, TaskSchedule schedule) {
  uint32_t stride = 1;
  for (uint32_t h = 0; h < job.hops; ++h) {
    const uint32_t fanout = job.fanouts[h];
    if (fanout <= kSharedFanout && fanout > stride) stride = fanout;
  }
  if (job.spec.pick == Pick::kFisherYates) stride *= 3;
  stride |= 1;  // lanes that draw side by side meet no bank conflicts
  switch (schedule) {
    case TaskSchedule::kPersistent:
      return launch_tasks<Id, TaskSchedule::kPersistent>(launch, job, stride);
    case TaskSchedule::kFusion: return launch_tasks<Id, TaskSchedule::kFusion>(launch, job, stride);
    case TaskSchedule::kAsPrinted:
      return launch_tasks<Id, TaskSchedule::kAsPrinted>(launch, job, stride);
  }
}

template void task_seeds<int32_t>(Launch, const TaskJob<int32_t>&, Vertices, int64_t, int32_t*,
                                  int32_t*);
template void task_seeds<int64_t>(Launch, const TaskJob<int64_t>&, Vertices, int64_t, int32_t*,
                                  int64_t*);
template void run_tasks<int32_t>(Launch, const TaskJob<int32_t>&, TaskSchedule);
template void run_tasks<int64_t>(Launch, const TaskJob<int64_t>&, TaskSchedule);

}  // namespace gnnbench::cuda
