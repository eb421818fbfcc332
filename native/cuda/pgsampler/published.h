// PGSampler's kernel as its paper describes it (sections III and IV-A, Algorithms 1 and 2): a block
// draws task by task, each row whole, by reservoir into arrays of edges in COO for each hop. The
// queue publishes and counts as in cuda/pgsampler/kernel.cu, because the printed one loses tasks.
#pragma once

#include "cuda/common/launch.h"
#include "cuda/common/vertices.h"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/task.h"

namespace gnnbench::cuda {

// The result array of a hop (Fig. 6), with space for `capacity` edges.
template <class Id>
struct HopArrays {
  Id* rows;            // destinations, global ids
  Id* cols;            // sources; first a row's reservoir slots
  int64_t* positions;  // or null
  uint32_t capacity;   // below 2^31
};

// Counters of a batch, initially zero.
struct PublishedControl {
  alignas(128) unsigned long long state;                    // see gnnbench/task.h
  alignas(128) uint32_t head;                               // next ticket
  alignas(128) uint32_t faults;                             // Fault, bitwise or
  alignas(128) unsigned long long edges[kMaxTaskHops + 1];  // of each hop
};

template <class Id>
struct PublishedJob {
  Csc<Id> graph;
  uint64_t key;
  uint32_t batch;
  uint32_t hops;        // at most kMaxTaskHops
  uint32_t fetch_size;  // tasks that a block takes at once, 1 to 32
  bool persistent;      // blocks stay, and first take one task; else a block ends after fetch_size
  uint32_t fanouts[kMaxTaskHops];
  uint32_t* known;            // [hops, num_nodes], initially zero: the paper's boolean array
  unsigned long long* queue;  // [queue_capacity], initially zero
  uint32_t queue_capacity;    // below 2^31
  HopArrays<Id> arrays[kMaxTaskHops];
  PublishedControl* control;
};

// Enqueues the seeds as tasks of hop 0.
template <class Id>
void published_seeds(Launch launch, const PublishedJob<Id>& job, Vertices seeds, int64_t n);

template <class Id>
void published_run(Launch launch, const PublishedJob<Id>& job);

}  // namespace gnnbench::cuda
