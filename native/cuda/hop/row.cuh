// Shared by the kernels of one hop: a destination's row, its draws, and the output of a slot. Slot
// s of a row goes to offsets[row] + s, so that results equal the sequential definitions of pick.h
// slot by slot.
#pragma once

#include "cuda/common/atomics.cuh"
#include "cuda/hop/hop.h"

namespace gnnbench::cuda {

template <class Id>
struct HopJob {
  Csc<Id> graph;
  Vertices dst;
  int64_t n;
  HopDraws draws;
  int64_t* offsets;
  uint32_t* slots;
  HopOut<Id> out;
};

// The kernels by kind of pick, one file each; n is positive.
template <class Id>
void hop_reservoir(Launch launch, const HopJob<Id>& job);
template <class Id>
void hop_reservoir_by_block(Launch launch, const HopJob<Id>& job);  // kReservoir, RowTeam::kBlock
template <class Id>
void hop_sequential(Launch launch, const HopJob<Id>& job);  // floyd, fisher_yates
template <class Id>
void hop_independent(Launch launch, const HopJob<Id>& job);  // with replacement, weighted

int64_t hop_reservoir_slots(uint32_t fanout, int64_t edges);
int64_t hop_sequential_slots(Pick pick, uint32_t fanout, int64_t edges);

// The offsets of a hop without destinations.
void hop_empty(Launch launch, int32_t* indptr, int32_t base);

struct HopRow {
  int64_t vertex;
  CscRow row;
  int64_t out;     // offset in the outputs
  uint32_t count;  // number of edges
  bool picks;      // false: every position, in stored order, or none
};

template <class Id>
__device__ HopRow load_row(const HopJob<Id>& job, int64_t row) {
  HopRow r;
  r.vertex = job.dst[row];
  r.row = job.graph.valid_row(r.vertex);
  r.out = job.offsets[row];
  r.count = static_cast<uint32_t>(job.offsets[row + 1] - r.out);
  r.picks = r.count > 0 && !takes_all(job.draws.spec.pick, r.row.degree, job.draws.fanout);
  return r;
}

template <class Id>
__device__ void write_slot(const HopJob<Id>& job, const HopRow& r, uint32_t slot,
                           uint32_t position) {
  const int64_t from = r.row.begin + position, to = r.out + slot;
  Id neighbor = -1;
  if (position >= r.row.degree) {
    report_fault(job.offsets + job.n + 1, Fault::kBadTables);
  } else {
    neighbor = job.graph.indices[from];
    if (!job.graph.has_node(neighbor)) report_fault(job.offsets + job.n + 1, Fault::kBadNeighbor);
  }
  job.out.neighbors[to] = neighbor;
  if (job.out.positions != nullptr) job.out.positions[to] = from;
}

template <class Id>
__device__ void write_indptr(const HopJob<Id>& job, int64_t row, int64_t offset) {
  job.out.indptr[row] = job.out.base + static_cast<int32_t>(offset);
  if (row == job.n - 1) {
    job.out.indptr[job.n] = job.out.base + static_cast<int32_t>(job.offsets[job.n]);
  }
}

}  // namespace gnnbench::cuda
