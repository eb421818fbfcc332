// Splits a long reservoir row: its draws become separate tasks, so that all workers share them. In
// the paper one block draws a row of any length. TaskJob::split_hubs enables the split. The edges
// are the same.
#pragma once

#include "cuda/pgsampler/rows.cuh"

namespace gnnbench::cuda {

template <class Id, class Team, Pick kOffers>
struct HubWorker : RowWorker<Id, Team, kOffers> {
  using RowWorker<Id, Team, kOffers>::job;
  using RowWorker<Id, Team, kOffers>::lane;
  using RowWorker<Id, Team, kOffers>::held;
  using RowWorker<Id, Team, kOffers>::shared;

  static __device__ uint32_t chunks_of(uint32_t draws) { return (draws - 1) / kChunkDraws + 1; }

  // Begins the split of a held row whose task is in `slot`. Returns false to end the worker.
  __device__ bool open_split(uint32_t row, uint32_t slot) const {
    const uint32_t fanout = job.fanouts[held.hop[row]];
    const uint32_t chunks = chunks_of(held.degree[row] - fanout);
    fill_slots(Lanes{32, lane}, fanout, slots_in_place(job, held.out[row]));
    const uint32_t tail = this->reserve_tasks(chunks);
    if (tail == kNoSlot) return false;
    if (lane == 0) atomicAdd(&job.control->chunks, chunks);
    __syncwarp();
    __threadfence();  // orders the slots and the row before the first published chunk
    for (uint32_t c = lane; c < chunks; c += 32) this->publish(tail + c, chunk_word(c, slot));
    return true;
  }

  // Draws one chunk of a split row. The last one to finish writes the row's edges. Returns false to
  // end the worker.
  __device__ bool run_chunk(uint64_t word) const {
    __threadfence();  // after the word was read: see open_split
    const uint32_t slot = chunk_slot(word);
    TaskRow& result = job.rows[slot];
    const uint64_t task = load_relaxed(job.queue + slot);
    const int64_t vertex = task_vertex(task);
    const uint32_t hop = task_hop(task), fanout = job.fanouts[hop];
    const uint32_t out = load_relaxed(&result.out);
    const CscRow row = job.graph.valid_row(vertex);
    const uint32_t first = chunk_of(word) * kChunkDraws, draws = row.degree - fanout;
    const uint32_t end = draws - first > kChunkDraws ? first + kChunkDraws : draws;
    const RowSlots slots = slots_in_place(job, out);
    offer_draws(Lanes{32, lane}, Draws{job.key, static_cast<uint64_t>(vertex), hop, job.batch},
                first, end, fanout, slots);
    __syncwarp();
    __threadfence();
    uint32_t left = 0;
    if (lane == 0) left = atomicSub(&result.count, 1u);
    if (__shfl_sync(kAllLanes, left, 0) != 1) return true;
    __syncwarp();
    __threadfence();  // orders the other chunks' offers
    if (lane == 0) result.count = fanout;
    held.vertex[lane] = vertex;
    held.begin[lane] = row.begin;
    held.degree[lane] = row.degree;
    held.out[lane] = out;
    held.count[lane] = lane == 0 ? fanout : 0;
    held.hop[lane] = hop;
    this->sum_up(lane == 0 ? fanout : 0, held.first);
    if (fanout <= kSharedFanout) {  // copies to where write_rows() reads them
      for (uint32_t s = lane; s < fanout; s += 32) shared[s] = load_relaxed(&slots[s]);
      __syncwarp();
    }
    return this->write_rows();
  }
};

}  // namespace gnnbench::cuda
