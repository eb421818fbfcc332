// All hops of a batch in one launch: PGSampler's persistent kernel (Algorithms 1 and 2), and the
// building of the blocks after it.
//
// Memory of a batch, all sized beforehand; a batch that does not fit sets a fault and is done
// again:
//
//   queue      word of each task                    [queue_capacity], zeros at first
//   rows       place and count of its result        [queue_capacity]
//   neighbors  of all rows, a row's side by side    [edge_capacity]; of a split row its slots first
//   nodes      vertices met besides the seeds       [node_capacity], each once
//   known      bits of every vertex (KnownLayout)   zeros at first
#pragma once

#include "cuda/common/launch.h"
#include "cuda/common/vertices.h"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/pick.h"
#include "gnnbench/task.h"

namespace gnnbench::cuda {

// Who takes the next task.
enum class TaskSchedule {
  kPersistent,  // resident warps take tickets until all work is done
  kFusion,      // a block of one warp per possible task, each takes one ticket and ends
  kAsPrinted,   // Algorithm 1 as printed: unsound, tasks get lost
};

// Counters of a batch, zeros at first. Those that all workers change have a line of their own.
struct TaskControl {
  alignas(128) unsigned long long state;  // see gnnbench/task.h
  alignas(128) unsigned long long edges;  // reserved in `neighbors`
  alignas(128) uint32_t head;             // next ticket
  alignas(128) uint32_t nodes;            // entries of `nodes`
  alignas(128) uint32_t faults;  // Fault, or-ed; whatever sets one makes every worker leave
  uint32_t chunks;               // tasks that are parts of split rows
  uint32_t stale;                // as printed: slots read before their task was written
  // Filled by the building of blocks, by hop.
  alignas(128) unsigned long long hop_edges[kMaxTaskHops + 1];
  uint32_t found[kMaxTaskHops + 1];   // vertices met first as sources of hop h - 1; 0: the seeds
  uint32_t ranked[kMaxTaskHops + 1];  // of those, how many have a local id
};

struct TaskRow {
  uint32_t out;    // in `neighbors`
  uint32_t count;  // edges; of a split row the chunks left until its edges are known
};

template <class Id>
struct TaskJob {
  Csc<Id> graph;
  PickSpec spec;  // any but random_walk
  uint64_t key;
  uint32_t batch;
  uint32_t hops;        // at most kMaxTaskHops
  uint32_t fetch_size;  // tickets taken at once, 1 to 32; the first time 1
  uint32_t fanouts[kMaxTaskHops];
  bool split_hubs;  // rows of more than kChunkDraws draws become several tasks
  KnownLayout layout;
  uint32_t* known;
  unsigned long long* queue;
  TaskRow* rows;
  uint32_t queue_capacity;  // below 2^31, as the other two
  Id* neighbors;
  int64_t* positions;  // [edge_capacity] or nullptr
  uint32_t edge_capacity;
  Id* nodes;
  uint32_t node_capacity;
  TaskControl* control;
};

// Draws of a reservoir row that one task takes, where longer rows are split.
constexpr uint32_t kChunkDraws = 4096;

// Seeds become tasks of hop 0 with the local ids 0 to n - 1.
template <class Id>
void pgsampler_seeds(Launch launch, const TaskJob<Id>& job, Vertices seeds, int64_t n,
                     int32_t* local_of, Id* src_nodes);

// The sampling kernel.
template <class Id>
void pgsampler_run(Launch launch, const TaskJob<Id>& job, TaskSchedule schedule);

// Blocks of all hops, one after the other in each array; hop h has found[0] + .. + found[h] rows.
template <class Id>
struct TaskBlocks {
  int32_t* local_of;  // [num_nodes], local id of every vertex met; nothing to clear
  Id* src_nodes;      // [seeds + node_capacity]; a hop's sources are a prefix
  int32_t* indptr;    // [indptr_capacity], rows + 1 entries a hop
  int64_t indptr_capacity;
  int32_t* indices;    // [edge_capacity]
  int64_t* positions;  // [edge_capacity] or nullptr
  bool rows_may_miss;  // as printed: a destination may have no result
};

// Local ids: by the hop at which a vertex is first met, in any order within.
template <class Id>
void pgsampler_local_ids(Launch launch, const TaskJob<Id>& job, const TaskBlocks<Id>& blocks);

// Rows in the order of local ids, offsets, local ids of the neighbours. `scratch` is for the scan
// of indptr, scan_scratch_bytes<int32_t>(indptr_capacity).
template <class Id>
void pgsampler_blocks(Launch launch, const TaskJob<Id>& job, const TaskBlocks<Id>& blocks,
                      void* scratch, size_t scratch_bytes);

}  // namespace gnnbench::cuda
