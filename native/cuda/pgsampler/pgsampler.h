// All hops of a batch in one launch: PGSampler's persistent kernel (Algorithms 1 and 2), and the
// construction of the blocks after it.
//
// Memory of a batch, all sized in advance. A batch that does not fit sets a fault and is sampled
// again:
//
//   queue      word of each task                    [queue_capacity], initially zero
//   rows       place and count of its result        [queue_capacity]
//   neighbors  of all rows, each row contiguous     [edge_capacity]; a split row's slots first
//   known      bits of every vertex (KnownLayout)   whole groups, initially zero
//
// Only the bits are stored per node of the graph: local ids are ranks among them.
#pragma once

#include "cuda/common/launch.h"
#include "cuda/common/vertices.h"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/pick.h"
#include "gnnbench/task.h"

namespace gnnbench::cuda {

// How tasks are scheduled.
enum class TaskSchedule {
  kPersistent,     // resident workers take tickets until all work is done
  kFusion,         // one single-warp block per possible task; each takes one ticket
  kNonPersistent,  // the blocks of kPersistent, but a worker ends after its first fetch_size
                   // tickets
  kAsPrinted,      // Algorithm 1 as printed: invalid, tasks get lost
};

// Which threads draw the rows of a worker's tasks.
enum class TaskWorker {
  kWarp,
  kBlock,  // as in the paper, for kPersistent and kNonPersistent; hubs are not split
};

// Counters of a batch, initially zero. Counters that all workers change have separate cache lines.
struct TaskControl {
  alignas(128) unsigned long long state;  // see gnnbench/task.h
  alignas(128) unsigned long long edges;  // reserved in `neighbors`
  alignas(128) uint32_t head;             // next ticket
  alignas(128) uint32_t faults;           // Fault, bitwise or; any fault makes every worker leave
  uint32_t chunks;                        // tasks that are parts of split rows
  uint32_t stale;                         // as printed: slots read before their task was written
  // Written by the construction of blocks.
  alignas(128) uint32_t hop_edges[kMaxTaskHops + 1];
  uint32_t known[kMaxTaskHops + 1];  // vertices met before hop h is drawn; last: all
};

struct TaskRow {
  uint32_t out;    // offset in `neighbors`
  uint32_t count;  // edges; for a split row first the number of pending chunks
};

template <class Id>
struct TaskJob {
  Csc<Id> graph;
  PickSpec spec;  // any except random_walk
  uint64_t key;
  uint32_t batch;
  uint32_t hops;        // at most kMaxTaskHops
  uint32_t fetch_size;  // tickets taken at once, 1 to 32; first 1
  uint32_t fanouts[kMaxTaskHops];
  bool split_hubs;  // rows of more than kChunkDraws draws become several tasks
  KnownLayout layout;
  uint32_t* known;
  unsigned long long* queue;
  TaskRow* rows;
  uint32_t queue_capacity;  // below 2^31, like edge_capacity
  Id* neighbors;
  int64_t* positions;  // [edge_capacity] or nullptr
  uint32_t edge_capacity;
  TaskControl* control;
};

// Draws of a reservoir row per task, if longer rows are split.
constexpr uint32_t kChunkDraws = 4096;

// Enqueues the seeds as tasks of hop 0.
template <class Id>
void pgsampler_seeds(Launch launch, const TaskJob<Id>& job, Vertices seeds, int64_t n);

// The sampling kernel.
template <class Id>
void pgsampler_run(Launch launch, const TaskJob<Id>& job, TaskSchedule schedule, TaskWorker worker);

// Inputs and scratch of the construction of blocks.
struct TaskRanks {
  Vertices seeds;
  int64_t num_seeds;
  int64_t groups;    // of the graph's nodes
  int32_t* sums;     // [pgsampler_sums], vertices in earlier groups, by hop first met
  int32_t* seed_of;  // [num_seeds], the seed of each rank among the seeds
  int32_t* indptr;   // [indptr_capacity], rows + 1 entries a hop: hop h has known[h] rows
  int64_t indptr_capacity;
  bool rows_may_miss;  // as printed: a destination may have no result
  void* scratch;       // of the scans; the larger of both
  size_t scratch_bytes;
};

inline int64_t pgsampler_sums(int64_t groups, uint32_t hops) { return groups * (hops + 1) + 1; }

// Outputs for the edges and nodes of the blocks, allocated by the posted sizes.
template <class Id>
struct TaskBlocks {
  Id* nodes;  // the sources of a hop are a prefix
  int32_t* indices[kMaxTaskHops];
  int64_t* positions[kMaxTaskHops];  // null without positions
};

// Writes the edges of each hop and the vertices met to `control`. Then all local ids are known:
// seeds in their order, then by the hop at which a vertex is first met, in order of vertices within
// a hop.
template <class Id>
void pgsampler_local_ids(Launch launch, const TaskJob<Id>& job, const TaskRanks& ranks);

// indptr: rows in the order of local ids.
template <class Id>
void pgsampler_offsets(Launch launch, const TaskJob<Id>& job, const TaskRanks& ranks);

template <class Id>
void pgsampler_blocks(Launch launch, const TaskJob<Id>& job, const TaskRanks& ranks,
                      const TaskBlocks<Id>& blocks);

}  // namespace gnnbench::cuda
