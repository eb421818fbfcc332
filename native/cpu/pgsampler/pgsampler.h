// PGSampler on threads: one queue of (vertex, hop) tasks of all hops (Algorithms 1 and 2). The
// queue works as in native/cuda/pgsampler/kernel.cu: slots are published after they are written,
// and outstanding work is counted. Threads replace thread blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/common/fault_box.h"
#include "cpu/hop/hop.h"
#include "gnnbench/task.h"

namespace gnnbench {

// A slot of the queue and the location of its task's result.
struct TaskSlot {
  std::atomic<uint64_t> word;  // 0: no task yet
  uint32_t worker;
  uint32_t count;
  int64_t at;  // offset in the worker's results
};

// Slots by number. The only bound is that on tasks: a segment is allocated when one of its slots is
// reserved.
class TaskQueue {
 public:
  explicit TaskQueue(int64_t max_tasks);
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Returns null if the slot's segment is not allocated.
  TaskSlot* find(uint64_t slot) const;
  // Returns a reserved slot; thread-safe.
  TaskSlot& make(uint64_t slot);

 private:
  static constexpr int kSegmentLog2 = 13;
  static constexpr uint64_t kSegment = uint64_t{1} << kSegmentLog2;
  std::vector<std::atomic<TaskSlot*>> segments_;
};

struct TaskCounts {
  int64_t enqueued, processed;
  int64_t stale;  // with as_printed: slots read before their task was written
  int64_t nodes;  // visited, without the seeds
};

template <class Id>
class TaskSampler {
 public:
  // `draws` without fanout and hop. `fanouts` start at the seeds, at most kMaxTaskHops.
  TaskSampler(const Csc<Id>& graph, const HopDraws& draws, const std::vector<int64_t>& fanouts,
              bool with_positions);
  ~TaskSampler();

  // Samples all hops of unique, valid seeds. A worker takes fetch_size tasks at once, the first
  // time one. as_printed: Algorithm 1 as printed with a worker per thread block, which loses tasks.
  // An exception of a worker stops all workers and is rethrown.
  FaultAt run(const Id* seeds, int64_t n, uint32_t fetch_size, bool as_printed, int64_t workers);

  TaskCounts counts() const;
  int64_t sources(int hop) const;  // of hop `hop`; -1: the seeds
  int64_t edges(int hop) const;

  // Assigns local ids by the hop of the first visit. Writes local_of [num_nodes] for visited
  // vertices and src_nodes [sources(hops - 1)].
  void local_ids(int32_t* local_of, Id* src_nodes);

  // Writes indptr [sources(hop - 1) + 1], indices [edges(hop)] and positions [edges(hop)] unless
  // null.
  void block(int hop, const int32_t* local_of, int32_t* indptr, int32_t* indices,
             int64_t* positions) const;

 private:
  struct Worker;

  bool process(Worker& worker, uint64_t word, TaskSlot& slot);
  bool meet(Worker& worker, Id vertex, uint32_t hop, bool& fresh);
  void push(const std::vector<uint64_t>& words);
  void work(Worker& worker, uint32_t fetch_size);
  void work_as_printed(Worker& worker, uint32_t index, uint32_t fetch_size);
  uint32_t met_at(Id vertex) const;

  Csc<Id> graph_;
  HopDraws draws_;
  std::vector<int64_t> fanouts_;
  bool with_positions_;
  KnownLayout layout_;
  std::unique_ptr<std::atomic<uint32_t>[]> known_;
  TaskQueue queue_;
  alignas(64) std::atomic<uint64_t> state_{0};  // see gnnbench/task.h
  alignas(64) std::atomic<uint32_t> head_{0};
  alignas(64) FaultBox box_;
  std::atomic<int64_t> stale_{0};
  std::vector<Id> seeds_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<int64_t> sources_, edges_;
};

}  // namespace gnnbench
