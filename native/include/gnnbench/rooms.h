// How much memory a batch is given whose sizes nobody knows before it is drawn, and what is done
// when that was too little, or more than there is. Host only; integers alone.
//
//   capacity   wanted: from the batches before, or a guess
//   rooms      of that, what the batch can use at all: what is allocated
//   sizes      what the batch needed, as far as it came
//   least      what is known to be needed; 0 where nothing is
//
// Batches are drawn again until they fit. Larger where something overflowed; smaller, towards
// `least`, where the memory is not there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gnnbench {

// Whether `now` is so much less than `before` that another try is worth it.
inline bool frees(const std::vector<int64_t>& before, const std::vector<int64_t>& now) {
  int64_t all = 0, left = 0;
  for (const int64_t n : before) all += n;
  for (const int64_t n : now) left += n;
  return all - left > all / 16;
}

// Halfway to `least`; what is at or below it stays. False where that frees little.
inline bool shrink(std::vector<int64_t>& capacity, const std::vector<int64_t>& least) {
  const std::vector<int64_t> before = capacity;
  for (size_t i = 0; i < capacity.size(); ++i) {
    const int64_t low = std::min(least[i], capacity[i]);
    capacity[i] = low + (capacity[i] - low) / 2;
  }
  return frees(before, capacity);
}

// ---- fused samplers: a map for the whole batch, rooms by hop ----

// Notes of the maps share int32 with local ids, see cuda/fused_map/table.cuh.
constexpr int64_t kFusedMaxEdges = INT32_MAX - 16;  // of a hop, 'new': of a batch
constexpr int64_t kFusedMaxSlots = INT32_MAX - 16;

// Slots of a hash table for so many nodes.
constexpr int64_t fused_slots(int64_t nodes) { return 2 * nodes + 64; }

constexpr int64_t kFusedMaxNodes = (kFusedMaxSlots - 64) / 2;

// Where nothing is known of a batch the worst is assumed, up to these.
constexpr int64_t kFirstEdges = int64_t{1} << 24;  // of a hop
constexpr int64_t kFirstNodes = int64_t{1} << 23;

// A batch as asked for.
struct FusedWork {
  int64_t num_nodes;  // of the graph
  int64_t num_edges;
  int64_t seeds;  // at most kFusedMaxNodes
  std::vector<int64_t> fanouts;
  bool each_edge_once;  // by a hop: the pick is without replacement
  bool only_new;        // frontier 'new'
};

// What is allocated for a hop.
struct FusedRoom {
  int64_t rows;
  int64_t nodes;  // known after the hop
  int64_t edges;

  bool operator==(const FusedRoom&) const = default;
};

// Capacities and sizes hold two numbers a hop, its nodes and its edges.
inline std::vector<int64_t> fused_guess(const FusedWork& work) {
  std::vector<int64_t> capacity;
  for (size_t h = 0; h < work.fanouts.size(); ++h) {
    capacity.insert(capacity.end(), {kFirstNodes, kFirstEdges});
  }
  return capacity;
}

inline std::vector<FusedRoom> fused_rooms(const FusedWork& work,
                                          const std::vector<int64_t>& capacity) {
  std::vector<FusedRoom> rooms;
  int64_t known = work.seeds, rows = known, all_edges = 0;
  for (size_t h = 0; h < work.fanouts.size(); ++h) {
    int64_t edges = rows * work.fanouts[h];  // below 2^31 and at most kAllNeighbors
    if (work.each_edge_once) edges = std::min(edges, work.num_edges);
    edges = std::min(edges, capacity[2 * h + 1]);
    edges = std::min(edges, work.only_new ? kFusedMaxEdges - all_edges : kFusedMaxEdges);
    int64_t nodes = std::min(known + edges, work.num_nodes);
    nodes = std::min(nodes, capacity[2 * h]);
    nodes = std::max(known, std::min(nodes, kFusedMaxNodes));
    rooms.push_back({rows, nodes, edges});
    known = nodes;
    rows = work.only_new ? std::min(nodes, edges) : nodes;
    all_edges += edges;
  }
  return rooms;
}

// Rooms as a capacity, so that shrinking it shrinks what is allocated.
inline std::vector<int64_t> as_capacity(const std::vector<FusedRoom>& rooms) {
  std::vector<int64_t> capacity;
  for (const FusedRoom& room : rooms) capacity.insert(capacity.end(), {room.nodes, room.edges});
  return capacity;
}

enum class FusedNext {
  kAgain,         // with `capacity`
  kTooManyEdges,  // `count` of them or more: more than int32 blocks hold
  kTooManyNodes,  // more than one map holds
  kRowsOverlap,   // more edges than the graph has: its offsets are broken
  kItFits,        // nothing was too small: the overflow has no cause
};

struct FusedRedo {
  FusedNext next;
  int64_t count;
  std::vector<int64_t> capacity;
  std::vector<int64_t> least;
};

// What to do about a batch that overflowed its rooms. Up to the hop that did the sizes are known,
// of that hop the edges; each time one hop more fits, or the batch is refused.
inline FusedRedo fused_redo(const FusedWork& work, const std::vector<FusedRoom>& rooms,
                            const int64_t* sizes) {
  FusedRedo redo{FusedNext::kAgain, 0, {}, {}};
  int64_t known = work.seeds, all_edges = 0;
  bool fits = true;
  for (size_t h = 0; h < rooms.size(); ++h) {
    const FusedRoom& room = rooms[h];
    const int64_t nodes = sizes[2 * h], edges = sizes[2 * h + 1];
    if (!fits) {  // what comes after it grows with it
      redo.capacity.insert(redo.capacity.end(), {4 * room.nodes, 4 * room.edges});
      redo.least.insert(redo.least.end(), {0, 0});
      continue;
    }
    if (work.only_new) all_edges += edges;
    const int64_t most = std::max(edges, all_edges);
    if (most > kFusedMaxEdges) return {FusedNext::kTooManyEdges, most, {}, {}};
    if (work.each_edge_once && edges > work.num_edges) return {FusedNext::kRowsOverlap, 0, {}, {}};
    if (room.nodes == kFusedMaxNodes && nodes > kFusedMaxNodes) {
      return {FusedNext::kTooManyNodes, kFusedMaxNodes, {}, {}};
    }
    fits = nodes <= room.nodes && edges <= room.edges;
    known = fits ? nodes : known + edges;
    redo.capacity.insert(redo.capacity.end(), {known, edges});
    redo.least.insert(redo.least.end(), {nodes, edges});  // of too few edges, too few nodes
  }
  if (fits) redo.next = FusedNext::kItFits;
  return redo;
}

// ---- PGSampler: one queue for the whole batch ----

// Capacities hold two numbers: tasks and edges.
enum : size_t { kTasks, kTaskEdges };

constexpr int64_t kMostTasks = INT32_MAX;  // of each of the two
constexpr int64_t kFirstTasks = int64_t{1} << 24;

struct TaskWork {
  int64_t num_nodes;  // of the graph
  int64_t num_edges;
  int64_t seeds;
  std::vector<int64_t> fanouts;
  bool each_edge_once;
  int64_t slots;   // a drawn edge takes while its row is drawn
  int64_t chunks;  // most tasks that a hop's long rows are split into
};

// The most that the batch can take, or kFirstTasks.
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

// Doubles what was `full` and notes it in `least`. False where it cannot grow.
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
