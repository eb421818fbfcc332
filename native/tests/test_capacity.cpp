// Host-only test of capacity planning for batches of unknown sizes: guesses, overflows, and lack of
// memory.
#include "expect.h"
#include "gnnbench/capacity.h"
#include "gnnbench/pick.h"
#include "gnnbench/undo.h"

namespace {

using namespace gnnbench;
using Numbers = std::vector<int64_t>;

// A graph of 1000 nodes and 5000 edges, 10 seeds, fanouts 4 and 3, without replacement.
FusedWork work() { return {1000, 5000, 10, {4, 3}, true, false}; }

void capacities_of_a_guess() {
  const FusedWork batch = work();
  const auto guess = fused_guess(batch);
  expect(guess == Numbers{1 << 23, 1 << 24, 1 << 23, 1 << 24}, "a guess is the same for all hops");
  expect(hop_capacities(batch, guess) == std::vector<HopCapacity>{{10, 50, 40}, {50, 200, 150}},
         "capacities are the worst case where the guess is above it");
  FusedWork wide = batch;
  wide.fanouts = {INT32_MAX, INT32_MAX};
  expect(
      hop_capacities(wide, guess) == std::vector<HopCapacity>{{10, 1000, 5000}, {1000, 1000, 5000}},
      "no more nodes and edges than the graph has");
  wide.fanouts = {kAllNeighbors, kAllNeighbors};
  wide.num_nodes = kFusedMaxNodes;
  wide.seeds = kFusedMaxNodes - 1;
  expect(
      hop_capacities(wide, guess)[0] == HopCapacity{kFusedMaxNodes - 1, kFusedMaxNodes - 1, 5000},
      "nor of a fanout that takes all neighbours of as many rows as there may be");
  wide = batch;
  wide.fanouts = {INT32_MAX, INT32_MAX};
  wide.each_edge_once = false;
  expect(hop_capacities(wide, guess)[1] == HopCapacity{1000, 1000, 1 << 24},
         "with replacement edges are bounded by the guess alone");
  FusedWork fresh = batch;
  fresh.only_new = true;
  expect(hop_capacities(fresh, guess) == std::vector<HopCapacity>{{10, 50, 40}, {40, 170, 120}},
         "with the frontier 'new' rows are what was drawn");
  FusedWork none = batch;
  none.seeds = 0;
  expect(hop_capacities(none, guess) == std::vector<HopCapacity>{{0, 0, 0}, {0, 0, 0}},
         "no seeds, no room");
}

void capacities_within_a_request() {
  const FusedWork batch = work();
  expect(hop_capacities(batch, {20, 12, 60, 25}) ==
             std::vector<HopCapacity>{{10, 20, 12}, {20, 45, 25}},
         "allocations are within the capacity and what its edges can bring");
  expect(hop_capacities(batch, {0, 0, 0, 0}) == std::vector<HopCapacity>{{10, 10, 0}, {10, 10, 0}},
         "the nodes that are known have room in any case");
  FusedWork large = {int64_t{1} << 40, int64_t{1} << 40, 1000, {1 << 30, 1 << 30}, false, true};
  const Numbers vast(4, int64_t{1} << 40);
  const auto allocated = hop_capacities(large, vast);
  expect(allocated[0].edges == kFusedMaxEdges && allocated[1].edges == 0,
         "the hops of 'new' share the edges that int32 offsets reach");
  expect(allocated[0].nodes == kFusedMaxNodes && fused_slots(kFusedMaxNodes) <= kFusedMaxSlots,
         "and no map has more nodes than slots can be told");
}

void redo_of_an_overflow() {
  const FusedWork batch = work();
  const auto allocated = hop_capacities(batch, {20, 12, 60, 25});
  const int64_t first[] = {20, 36, 20, 0};  // hop 0 drew 36 edges into 12
  FusedRedo redo = fused_redo(batch, allocated, first);
  expect(redo.next == FusedNext::kAgain && redo.capacity == Numbers{46, 36, 180, 100},
         "the hop gets its edges, and as many nodes; what comes after it four times its room");
  expect(redo.least == Numbers{20, 36, 0, 0}, "of too few edges too few nodes were met");
  const int64_t second[] = {18, 12, 50, 25};  // hop 1 met 50 nodes and had room for 45
  redo = fused_redo(batch, allocated, second);
  expect(redo.next == FusedNext::kAgain && redo.capacity == Numbers{18, 12, 43, 25},
         "hops that fit keep what they took");
  const int64_t third[] = {18, 12, 40, 25};
  expect(fused_redo(batch, allocated, third).next == FusedNext::kItFits,
         "an overflow without a cause");
  const int64_t overlap[] = {20, 5001, 20, 0};
  expect(fused_redo(batch, allocated, overlap).next == FusedNext::kRowsOverlap,
         "more edges than the graph has");
}

void refusals() {
  FusedWork batch = {int64_t{1} << 40, int64_t{1} << 40, 1000, {1 << 30, 1 << 30}, false, true};
  const Numbers vast(4, int64_t{1} << 40);
  const auto allocated = hop_capacities(batch, vast);
  const int64_t together[] = {5000, kFusedMaxEdges, 5000, 7};
  FusedRedo redo = fused_redo(batch, allocated, together);
  expect(redo.next == FusedNext::kTooManyEdges && redo.count == kFusedMaxEdges + 7,
         "with 'new' the edges of all hops count together");
  batch.only_new = false;
  redo = fused_redo(batch, hop_capacities(batch, vast), together);
  expect(redo.next == FusedNext::kItFits, "else each hop's alone");
  const int64_t nodes[] = {kFusedMaxNodes + 1, kFusedMaxEdges, 0, 0};
  redo = fused_redo(batch, hop_capacities(batch, vast), nodes);
  expect(redo.next == FusedNext::kTooManyNodes && redo.count == kFusedMaxNodes,
         "more nodes than a map takes");
}

// A batch that needs 30 edges and 32 nodes, then 400 and 300, in a memory of `memory` numbers.
// Returns how often it was drawn, 0 where the memory is too small for it.
int draws(int64_t memory, Numbers capacity) {
  const FusedWork batch = {100'000, 1'000'000, 10, {1000, 1000}, true, false};
  const Numbers needs{32, 30, 300, 400};
  Numbers least(4, 0);
  if (capacity.empty()) capacity = fused_guess(batch);
  for (int count = 1;;) {
    const auto allocated = hop_capacities(batch, capacity);
    int64_t sum = 0;
    for (const HopCapacity& hop : allocated) sum += hop.nodes + hop.edges;
    if (sum > memory) {
      capacity = as_capacity(allocated);
      if (!shrink(capacity, least)) return 0;
      continue;
    }
    Numbers sizes = needs;
    bool fits = true;
    for (size_t h = 0; h < 2; ++h) {
      if (!fits) sizes[2 * h] = sizes[2 * h + 1] = 0;
      if (sizes[2 * h] > allocated[h].nodes || sizes[2 * h + 1] > allocated[h].edges) fits = false;
    }
    if (fits) return count;
    const FusedRedo redo = fused_redo(batch, allocated, sizes.data());
    if (redo.next != FusedNext::kAgain) return -1;
    capacity = redo.capacity;
    least = redo.least;
    if (++count > 20) return -2;
  }
}

void batches_until_they_fit() {
  expect(draws(int64_t{1} << 40, {}) == 1, "the worst case fits at once");
  expect(draws(2'000'000, {}) == 1, "a guess beyond the memory is made smaller");
  expect(draws(int64_t{1} << 40, {1, 1, 1, 1}) == 3, "one hop more fits each time");
  const int tight = draws(2000, {});
  expect(tight >= 1, "down to what the batch needs");
  expect(draws(700, {}) == 0 && draws(700, {1, 1, 1, 1}) == 0, "and no further");
}

void shrinking() {
  Numbers capacity{1000, 8, 100};
  expect(shrink(capacity, {0, 0, 200}) && capacity == Numbers{500, 4, 100},
         "by half, but nothing that is needed");
  int steps = 0;
  while (shrink(capacity, {400, 0, 0})) ++steps;
  expect(capacity[0] >= 400 && capacity[0] < 450 && steps < 10, "ends near to what is needed");
  Numbers nothing{0, 0};
  expect(!shrink(nothing, {0, 0}), "nothing to give up");
}

void tasks() {
  TaskWork batch{1000, 5000, 10, {4, 3}, true, 1, 0};
  expect(task_guess(batch) == Numbers{60, 190}, "tasks are the rows of all hops");
  batch.slots = 3;
  batch.chunks = 7;
  expect(task_guess(batch) == Numbers{74, 570}, "slots are edges, chunks are tasks");
  batch.fanouts = {INT32_MAX, INT32_MAX, INT32_MAX};
  batch.each_edge_once = false;
  batch.num_nodes = int64_t{1} << 40;
  expect(task_guess(batch) == Numbers{1 << 24, 1 << 24}, "up to the first guess");
  batch.seeds = 0;
  expect(task_guess(batch)[kTasks] == 21 && task_guess(batch)[kTaskEdges] == 0,
         "room for a task in any case");

  Numbers capacity{100, 200}, least{11, 0};
  expect(grow(capacity, least, {true, true}) && capacity == Numbers{1224, 1424} &&
             least == Numbers{101, 201},
         "what was full is doubled, and known to be needed");
  capacity = {kMostTasks - 1, 0};
  expect(grow(capacity, least, {true, false}) && capacity == Numbers{kMostTasks, 0},
         "up to the most");
  expect(!grow(capacity, least, {true, false}), "and no further");
}

void undo() {
  int undone = 0;
  {
    Undo guard([&] { ++undone; });
  }
  expect(undone == 1, "what did not go well is undone");
  {
    Undo guard([&] { ++undone; });
    guard.armed = false;
  }
  expect(undone == 1, "what went well stays");
}

}  // namespace

int main() {
  capacities_of_a_guess();
  capacities_within_a_request();
  redo_of_an_overflow();
  refusals();
  batches_until_they_fit();
  shrinking();
  tasks();
  undo();
  return failed();
}
