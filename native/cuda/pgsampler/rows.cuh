// The rows that a worker draws together, one per held task: first their draws, then their edges. A
// worker is a warp, or a block whose first warp holds the rows that the whole block draws.
#pragma once

#include "cuda/pgsampler/queue.cuh"
#include "cuda/pick/fisher_yates.cuh"
#include "cuda/pick/floyd.cuh"
#include "cuda/pick/independent.cuh"
#include "cuda/pick/reservoir.cuh"

namespace gnnbench::cuda {

constexpr uint32_t kSharedFanout = 64;  // with larger fanouts rows keep their slots in `neighbors`

// Identity of a worker. any() and all() return the same value to all threads and are barriers.
struct OneWarp {
  static constexpr bool kSplits = true;  // may share a long row with other workers
  uint32_t lane;

  __device__ uint32_t rank() const { return lane; }
  __device__ uint32_t size() const { return 32; }
  __device__ bool leads() const { return true; }
  __device__ void sync() const { __syncwarp(); }
  __device__ bool any(bool one) const { return __any_sync(kAllLanes, one); }
  __device__ bool all(bool one) const { return __all_sync(kAllLanes, one); }
};

constexpr uint32_t kWorkerThreads = 128;  // of a block that is one worker

struct OneBlock : Block<kWorkerThreads> {
  static constexpr bool kSplits = false;

  __device__ bool leads() const { return threadIdx.x < 32; }
  __device__ bool any(bool one) const { return __syncthreads_or(one); }
  __device__ bool all(bool one) const { return __syncthreads_and(one); }
};

struct Held {
  int64_t vertex[32];
  int64_t begin[32];  // of its row in graph.indices
  uint32_t degree[32];
  uint32_t out[32];    // of its result in job.neighbors
  uint32_t count[32];  // edges to write now
  uint32_t first[33];  // pairs before it: its edges and, before the last hop, itself
  uint32_t units[33];  // offer units before its own, for a reservoir
  uint32_t hop[32];
};

// A row's drawn positions: in shared memory, or at its neighbours' final place, one per id.
struct RowSlots {
  uint32_t* at;
  uint32_t step;

  __device__ uint32_t& operator[](uint32_t s) const { return at[s * step]; }
  __device__ RowSlots after(uint32_t n) const { return {at + static_cast<size_t>(n) * step, step}; }
};

// Slots at the final place of the neighbours of the result at `out`.
template <class Id>
__device__ __forceinline__ RowSlots slots_in_place(const TaskJob<Id>& job, uint32_t out) {
  return {reinterpret_cast<uint32_t*>(job.neighbors + out), sizeof(Id) / 4};
}

// kOffers is a reservoir. With kReservoirThinned, whose cells use many registers, the workers draw
// no other pick.
template <class Id, class Team, Pick kOffers>
struct RowWorker : QueueWarp<Id> {
  using QueueWarp<Id>::job;
  using QueueWarp<Id>::lane;

  Team team;
  Held& held;
  uint32_t* shared;  // fetch_size x stride words
  uint32_t stride;

  __device__ Pick pick() const {
    return kOffers == Pick::kReservoirThinned ? kOffers : job.spec.pick;
  }

  __device__ RowSlots slots_of(uint32_t row, uint32_t fanout) const {
    if (fanout <= kSharedFanout) return {shared + row * stride, 1};
    return slots_in_place(job, held.out[row]);
  }

  __device__ Draws draws_of(uint32_t row) const {
    return Draws{job.key, static_cast<uint64_t>(held.vertex[row]), held.hop[row], job.batch};
  }

  // Draws the reservoirs of all held rows together, so that short rows share the lanes.
  __device__ void draw_reservoirs(bool drawn) const {
    if (team.leads()) {
      const uint32_t fanout = job.fanouts[held.hop[lane]];
      sum_up(drawn ? offer_units(kOffers, held.degree[lane], fanout) : 0, held.units);
    }
    team.sync();
    for (uint32_t p = team.rank(), row = 0; p < held.first[32]; p += team.size()) {
      row = row_of(p, held.first, row);
      const uint32_t s = p - held.first[row];
      const bool has_slot = held.units[row] < held.units[row + 1] && s < held.count[row];
      if (has_slot) slots_of(row, held.count[row])[s] = s;
    }
    team.sync();
    for (uint32_t p = team.rank(), row = 0; p < held.units[32]; p += team.size()) {
      row = row_of(p, held.units, row);
      const uint32_t count = held.count[row];  // the fanout
      offer_unit(kOffers, draws_of(row), p - held.units[row], held.degree[row], count,
                 slots_of(row, count));
    }
  }

  // Draws a row with dependent draws and a large fanout by all lanes. A row of fisher_yates has 3
  // fanout slots.
  __device__ void draw_together(uint32_t row) const {
    const uint32_t fanout = job.fanouts[held.hop[row]], degree = held.degree[row];
    const RowSlots slots = slots_of(row, fanout);
    if (pick() == Pick::kFloyd) {
      floyd_warp(lane, degree, fanout, draws_of(row), slots);
    } else {
      fisher_yates_warp(lane, degree, fanout, draws_of(row), slots, slots.after(fanout),
                        slots.after(2 * fanout));
    }
  }

  // Fills the slots of held rows with dependent draws. `drawn` is set per row in the lanes of the
  // first warp.
  __device__ void draw_rows(bool drawn) const {
    if (!without_replacement(pick())) return;
    if (takes_offers(pick())) {
      draw_reservoirs(drawn);
    } else if (team.leads()) {
      // For a small fanout each lane draws its own row.
      const uint32_t fanout = job.fanouts[held.hop[lane]];
      const bool alone = drawn && fanout <= kSharedFanout;
      if (alone) {
        uint32_t* out = shared + lane * stride;
        if (pick() == Pick::kFloyd) {
          pick_floyd(held.degree[lane], fanout, draws_of(lane), out);
        } else {
          pick_fisher_yates(held.degree[lane], fanout, draws_of(lane), out, out + fanout);
        }
      }
      for (uint32_t left = __ballot_sync(kAllLanes, drawn && !alone); left != 0; left &= left - 1) {
        draw_together(__ffs(left) - 1);
      }
    }
    team.sync();
  }

  // The position in its row of edge `s` of a held row.
  __device__ uint32_t position_of(uint32_t row, uint32_t s) const {
    const uint32_t degree = held.degree[row], fanout = job.fanouts[held.hop[row]];
    if (takes_all(pick(), degree, fanout)) return s;
    if (without_replacement(pick())) return slots_of(row, fanout)[s];
    const Draws draws = draws_of(row);
    return independent_slot(job.spec, CscRow{held.begin[row], degree}, s, draws);
  }

  // The row that contains pair (or unit) `p`, at or behind `row`.
  static __device__ uint32_t row_of(uint32_t p, const uint32_t (&first)[33], uint32_t row) {
    while (first[row + 1] <= p) ++row;
    return row;
  }

  // Writes the edges of the held rows and pushes their tasks. Returns false to end the worker.
  __device__ bool write_rows() const {
    const uint32_t pairs = held.first[32];
    bool room = true;
    for (uint32_t from = 0, row = 0; from < pairs && room; from += team.size()) {
      const uint32_t p = from + team.rank();
      bool any = p < pairs;
      int64_t vertex = 0;
      uint32_t hop = 0;
      if (any) {
        row = row_of(p, held.first, row);
        const uint32_t s = p - held.first[row];
        hop = held.hop[row];
        if (s == held.count[row]) {
          vertex = held.vertex[row];  // a finished task's vertex continues at the next hop
        } else {
          const uint32_t position = position_of(row, s);
          const int64_t at = held.begin[row] + position;
          any = position < held.degree[row];
          if (!any) {
            this->fault(Fault::kBadTables);
          } else {
            const Id neighbor = job.graph.indices[at];
            job.neighbors[held.out[row] + s] = neighbor;
            if (job.positions != nullptr) job.positions[held.out[row] + s] = at;
            vertex = neighbor;
            any = job.graph.has_node(vertex);
            if (!any) this->fault(Fault::kBadNeighbor);
          }
        }
      }
      room = this->meet(any, vertex, hop);
    }
    return team.all(room);
  }

  // Exclusive sums of the lanes' numbers, with the total last.
  __device__ void sum_up(uint32_t own, uint32_t (&sums)[33]) const {
    uint32_t sum = own;
#pragma unroll
    for (uint32_t d = 1; d < 32; d *= 2) {
      const uint32_t other = __shfl_up_sync(kAllLanes, sum, d);
      if (lane >= d) sum += other;
    }
    sums[lane + 1] = sum;
    if (lane == 0) sums[0] = 0;
    __syncwarp();
  }
};

}  // namespace gnnbench::cuda
