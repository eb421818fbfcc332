// Queue operations of a warp: pushing tasks and testing for known vertices.
//
// A single store of a nonzero word publishes a slot, so a reader never sees a partial task.
#pragma once

#include "cuda/common/atomics.cuh"
#include "cuda/pgsampler/pgsampler.h"
#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {

constexpr uint32_t kNoSlot = 0xFFFFFFFFu;

template <class Id>
struct QueueWarp {
  const TaskJob<Id>& job;
  uint32_t lane;

  __device__ void fault(Fault which) const { report_fault(&job.control->faults, which); }

  __device__ bool faulty() const { return load_relaxed(&job.control->faults) != 0; }

  // Lane 0 counts `n` more tasks as enqueued. All lanes get the first slot, or kNoSlot if the queue
  // is full.
  __device__ uint32_t reserve_tasks(uint32_t n) const {
    unsigned long long state = 0;
    if (lane == 0) state = atomicAdd(&job.control->state, n * kOneEnqueued);
    const uint32_t tail = __shfl_sync(kAllLanes, tasks_enqueued(state), 0);
    if (tail < job.queue_capacity && n <= job.queue_capacity - tail) return tail;
    if (lane == 0) fault(Fault::kTasksFull);
    return kNoSlot;
  }

  __device__ void publish(uint32_t slot, uint64_t word) const {
    store_relaxed(job.queue + slot, static_cast<unsigned long long>(word));
  }

  // Marks vertices as sources of `hop`, one per lane (or none), and enqueues new tasks. Algorithm
  // 2: read first, then an atomic or. Returns false if the queue is full.
  __device__ bool meet(bool any, int64_t vertex, uint32_t hop) const {
    bool fresh = false;
    if (any) {
      const bool last = hop + 1 == job.hops;
      uint32_t& word = job.known[job.layout.word(vertex)];
      const uint32_t shift = job.layout.shift(vertex), bit = 1u << (hop + 1);
      uint32_t bits = job.layout.bits(load_relaxed(&word), shift);
      // A source of the last hop has no task, so only whether the vertex was met before matters.
      if (last ? bits == 0 : (bits & bit) == 0) {
        bits = job.layout.bits(atomicOr(&word, bit << shift), shift);
        fresh = !last && (bits & bit) == 0;
      }
    }
    const uint32_t before = (1u << lane) - 1;
    const uint32_t tasks = __ballot_sync(kAllLanes, fresh);
    if (tasks != 0) {
      const uint32_t tail = reserve_tasks(__popc(tasks));
      if (tail == kNoSlot) return false;
      if (fresh) publish(tail + __popc(tasks & before), task_word(vertex, hop + 1));
    }
    return true;
  }
};

}  // namespace gnnbench::cuda
