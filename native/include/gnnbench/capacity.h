// Capacity planning for batches whose sizes are unknown until they are sampled. Host only.
//
//   capacity    requested entries: from earlier batches, or a guess
//   allocated   the part of the capacity that the batch can use
//   sizes       entries that the batch needed, up to the hop that overflowed
//   least       a known lower bound of the need; 0 where none is known
//
// A batch is sampled again until it fits. An overflow raises the capacity. Lack of memory lowers it
// towards `least`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gnnbench {

// Whether `now` is less than `before` by more than 1/16. A smaller saving does not justify a retry.
inline bool frees(const std::vector<int64_t>& before, const std::vector<int64_t>& now) {
  int64_t all = 0, left = 0;
  for (const int64_t n : before) all += n;
  for (const int64_t n : now) left += n;
  return all - left > all / 16;
}

// Moves each capacity above `least` halfway to it. Returns false where that frees too little.
inline bool shrink(std::vector<int64_t>& capacity, const std::vector<int64_t>& least) {
  const std::vector<int64_t> before = capacity;
  for (size_t i = 0; i < capacity.size(); ++i) {
    const int64_t low = std::min(least[i], capacity[i]);
    capacity[i] = low + (capacity[i] - low) / 2;
  }
  return frees(before, capacity);
}

// ---- fused samplers: one map for the whole batch, one capacity per hop ----

// kNew and other markers of the maps share int32 with local ids, see cuda/fused_map/table.cuh.
constexpr int64_t kFusedMaxEdges = INT32_MAX - 16;  // per hop; with frontier 'new' per batch
constexpr int64_t kFusedMaxSlots = INT32_MAX - 16;

// Hash table slots for a number of nodes.
constexpr int64_t fused_slots(int64_t nodes) { return 2 * nodes + 64; }

constexpr int64_t kFusedMaxNodes = (kFusedMaxSlots - 64) / 2;

// The first guess is the worst case, at most these limits.
constexpr int64_t kFirstEdges = int64_t{1} << 24;  // per hop
constexpr int64_t kFirstNodes = int64_t{1} << 23;

// The requested batch.
struct FusedWork {
  int64_t num_nodes;  // of the graph
  int64_t num_edges;
  int64_t seeds;  // at most kFusedMaxNodes
  std::vector<int64_t> fanouts;
  bool each_edge_once;  // within a hop: the pick is without replacement
  bool only_new;        // frontier 'new'
};

// Entries allocated for a hop.
struct HopCapacity {
  int64_t rows;
  int64_t nodes;  // of all hops up to this one
  int64_t edges;

  bool operator==(const HopCapacity&) const = default;
};

// Capacities and sizes hold two numbers per hop: nodes and edges.
inline std::vector<int64_t> fused_guess(const FusedWork& work) {
  std::vector<int64_t> capacity;
  for (size_t h = 0; h < work.fanouts.size(); ++h) {
    capacity.insert(capacity.end(), {kFirstNodes, kFirstEdges});
  }
  return capacity;
}

inline std::vector<HopCapacity> hop_capacities(const FusedWork& work,
                                               const std::vector<int64_t>& capacity) {
  std::vector<HopCapacity> allocated;
  int64_t known = work.seeds, rows = known, all_edges = 0;
  for (size_t h = 0; h < work.fanouts.size(); ++h) {
    int64_t edges = rows * work.fanouts[h];  // below 2^31 and at most kAllNeighbors
    if (work.each_edge_once) edges = std::min(edges, work.num_edges);
    edges = std::min(edges, capacity[2 * h + 1]);
    edges = std::min(edges, work.only_new ? kFusedMaxEdges - all_edges : kFusedMaxEdges);
    int64_t nodes = std::min(known + edges, work.num_nodes);
    nodes = std::min(nodes, capacity[2 * h]);
    nodes = std::max(known, std::min(nodes, kFusedMaxNodes));
    allocated.push_back({rows, nodes, edges});
    known = nodes;
    rows = work.only_new ? std::min(nodes, edges) : nodes;
    all_edges += edges;
  }
  return allocated;
}

// The allocated entries as a capacity: to shrink it is to shrink the allocation.
inline std::vector<int64_t> as_capacity(const std::vector<HopCapacity>& allocated) {
  std::vector<int64_t> capacity;
  for (const HopCapacity& hop : allocated) capacity.insert(capacity.end(), {hop.nodes, hop.edges});
  return capacity;
}

enum class FusedNext {
  kAgain,         // sample again with `capacity`
  kTooManyEdges,  // `count` or more: int32 blocks cannot hold them
  kTooManyNodes,  // one map cannot hold them
  kRowsOverlap,   // more edges than the graph has: its offsets are invalid
  kItFits,        // nothing overflowed: an internal error
};

struct FusedRedo {
  FusedNext next;
  int64_t count;
  std::vector<int64_t> capacity;
  std::vector<int64_t> least;
};

// What to do after an overflow. Known are all sizes before the overflowing hop, and that hop's
// edges. Each retry fits at least one more hop, or the batch is rejected.
inline FusedRedo fused_redo(const FusedWork& work, const std::vector<HopCapacity>& allocated,
                            const int64_t* sizes) {
  FusedRedo redo{FusedNext::kAgain, 0, {}, {}};
  int64_t known = work.seeds, all_edges = 0;
  bool fits = true;
  for (size_t h = 0; h < allocated.size(); ++h) {
    const HopCapacity& hop = allocated[h];
    const int64_t nodes = sizes[2 * h], edges = sizes[2 * h + 1];
    if (!fits) {  // later hops grow with the one that overflowed
      redo.capacity.insert(redo.capacity.end(), {4 * hop.nodes, 4 * hop.edges});
      redo.least.insert(redo.least.end(), {0, 0});
      continue;
    }
    if (work.only_new) all_edges += edges;
    const int64_t most = std::max(edges, all_edges);
    if (most > kFusedMaxEdges) return {FusedNext::kTooManyEdges, most, {}, {}};
    if (work.each_edge_once && edges > work.num_edges) return {FusedNext::kRowsOverlap, 0, {}, {}};
    if (hop.nodes == kFusedMaxNodes && nodes > kFusedMaxNodes) {
      return {FusedNext::kTooManyNodes, kFusedMaxNodes, {}, {}};
    }
    fits = nodes <= hop.nodes && edges <= hop.edges;
    known = fits ? nodes : known + edges;
    redo.capacity.insert(redo.capacity.end(), {known, edges});
    redo.least.insert(redo.least.end(), {nodes, edges});  // too few edges give too few nodes
  }
  if (fits) redo.next = FusedNext::kItFits;
  return redo;
}

// ---- PGSampler: one queue for the whole batch ----

// Capacities hold two numbers: tasks and edges.
enum : size_t { kTasks, kTaskEdges };

constexpr int64_t kMostTasks = INT32_MAX;  // tasks, and edges
constexpr int64_t kFirstTasks = int64_t{1} << 24;

struct TaskWork {
  int64_t num_nodes;  // of the graph
  int64_t num_edges;
  int64_t seeds;
  std::vector<int64_t> fanouts;
  bool each_edge_once;
  int64_t slots;   // per drawn edge, while its row is being drawn
  int64_t chunks;  // upper bound of the tasks that long rows of a hop are split into
};

// The worst case of the batch, at most kFirstTasks.
inline std::vector<int64_t> task_guess(const TaskWork& work) {
  const auto times = [](int64_t a, int64_t b) { return a > kMostTasks / b ? kMostTasks : a * b; };
  int64_t rows = work.seeds, tasks = 0, all_edges = 0;
  for (const int64_t fanout : work.fanouts) {
    int64_t edges = times(rows, fanout);
    if (work.each_edge_once) edges = std::min(edges, work.num_edges);
    tasks += rows + work.chunks;
    all_edges += edges * work.slots;
    rows = std::min(work.num_nodes, rows + edges);
  }
  return {std::max(std::min(tasks, kFirstTasks), work.seeds + 1), std::min(all_edges, kFirstTasks)};
}

// Doubles each capacity in `full` and raises its lower bound. Returns false where one cannot grow.
inline bool grow(std::vector<int64_t>& capacity, std::vector<int64_t>& least,
                 const bool (&full)[2]) {
  bool can = true;
  for (size_t i = 0; i < 2; ++i) {
    if (!full[i]) continue;
    can = can && capacity[i] < kMostTasks;
    least[i] = capacity[i] + 1;
    capacity[i] = std::min(kMostTasks, 2 * capacity[i] + 1024);
  }
  return can;
}

}  // namespace gnnbench
