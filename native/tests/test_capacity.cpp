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
  expect(guess == Numbers{1 << 23, 1 << 24, 1 << 23, 1 << 24}, "the guess is equal for all hops");
  expect(hop_capacities(batch, guess) == std::vector<HopCapacity>{{10, 50, 40}, {50, 200, 150}},
         "the worst case limits the guess");
  FusedWork wide = batch;
  wide.fanouts = {INT32_MAX, INT32_MAX};
  expect(
      hop_capacities(wide, guess) == std::vector<HopCapacity>{{10, 1000, 5000}, {1000, 1000, 5000}},
      "the graph's nodes and edges limit a capacity");
  wide.fanouts = {kAllNeighbors, kAllNeighbors};
  wide.num_nodes = kFusedMaxNodes;
  wide.seeds = kFusedMaxNodes - 1;
  expect(
      hop_capacities(wide, guess)[0] == HopCapacity{kFusedMaxNodes - 1, kFusedMaxNodes - 1, 5000},
      "the graph limits a fanout of all neighbours of the most rows");
  wide = batch;
  wide.fanouts = {INT32_MAX, INT32_MAX};
  wide.each_edge_once = false;
  expect(hop_capacities(wide, guess)[1] == HopCapacity{1000, 1000, 1 << 24},
         "with replacement only the guess limits edges");
  FusedWork fresh = batch;
  fresh.only_new = true;
  expect(hop_capacities(fresh, guess) == std::vector<HopCapacity>{{10, 50, 40}, {40, 170, 120}},
         "with frontier 'new' only new nodes become rows");
  FusedWork none = batch;
  none.seeds = 0;
  expect(hop_capacities(none, guess) == std::vector<HopCapacity>{{0, 0, 0}, {0, 0, 0}},
         "no seeds need no capacity");
}

void capacities_within_a_request() {
  const FusedWork batch = work();
  expect(hop_capacities(batch, {20, 12, 60, 25}) ==
             std::vector<HopCapacity>{{10, 20, 12}, {20, 45, 25}},
         "the capacity and its edges limit an allocation");
  expect(hop_capacities(batch, {0, 0, 0, 0}) == std::vector<HopCapacity>{{10, 10, 0}, {10, 10, 0}},
         "known nodes always fit");
  FusedWork large = {int64_t{1} << 40, int64_t{1} << 40, 1000, {1 << 30, 1 << 30}, false, true};
  const Numbers vast(4, int64_t{1} << 40);
  const auto allocated = hop_capacities(large, vast);
  expect(allocated[0].edges == kFusedMaxEdges && allocated[1].edges == 0,
         "with frontier 'new' the hops share the int32 edges");
  expect(allocated[0].nodes == kFusedMaxNodes && fused_slots(kFusedMaxNodes) <= kFusedMaxSlots,
         "a map's slots limit its nodes");
}

void redo_of_an_overflow() {
  const FusedWork batch = work();
  const auto allocated = hop_capacities(batch, {20, 12, 60, 25});
  const int64_t first[] = {20, 36, 20, 0};  // hop 0 sampled 36 edges for a capacity of 12
  FusedRedo redo = fused_redo(batch, allocated, first);
  expect(redo.next == FusedNext::kAgain && redo.capacity == Numbers{46, 36, 180, 100},
         "the hop gets its edges and as many nodes, later hops four times theirs");
  expect(redo.least == Numbers{20, 36, 0, 0}, "too few edges give too few nodes");
  const int64_t second[] = {18, 12, 50, 25};  // hop 1 met 50 nodes with a capacity of 45
  redo = fused_redo(batch, allocated, second);
  expect(redo.next == FusedNext::kAgain && redo.capacity == Numbers{18, 12, 43, 25},
         "hops that fit keep their sizes");
  const int64_t third[] = {18, 12, 40, 25};
  expect(fused_redo(batch, allocated, third).next == FusedNext::kItFits,
         "an overflow without a cause is an error");
  const int64_t overlap[] = {20, 5001, 20, 0};
  expect(fused_redo(batch, allocated, overlap).next == FusedNext::kRowsOverlap,
         "more edges than the graph has are an error");
}

void batches_that_never_fit() {
  FusedWork batch = {int64_t{1} << 40, int64_t{1} << 40, 1000, {1 << 30, 1 << 30}, false, true};
  const Numbers vast(4, int64_t{1} << 40);
  const auto allocated = hop_capacities(batch, vast);
  const int64_t together[] = {5000, kFusedMaxEdges, 5000, 7};
  FusedRedo redo = fused_redo(batch, allocated, together);
  expect(redo.next == FusedNext::kTooManyEdges && redo.count == kFusedMaxEdges + 7,
         "with frontier 'new' the edges of all hops are summed");
  batch.only_new = false;
  redo = fused_redo(batch, hop_capacities(batch, vast), together);
  expect(redo.next == FusedNext::kItFits, "with frontier 'cumulative' each hop has its own limit");
  const int64_t nodes[] = {kFusedMaxNodes + 1, kFusedMaxEdges, 0, 0};
  redo = fused_redo(batch, hop_capacities(batch, vast), nodes);
  expect(redo.next == FusedNext::kTooManyNodes && redo.count == kFusedMaxNodes,
         "more nodes than a map holds are an error");
}

// A batch that needs 30 edges and 32 nodes, then 400 and 300, in a memory of `memory` numbers.
// Returns the number of attempts, or 0 if the memory is too small.
int attempts(int64_t memory, Numbers capacity) {
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
  expect(attempts(int64_t{1} << 40, {}) == 1, "the worst case fits at once");
  expect(attempts(2'000'000, {}) == 1, "a guess beyond the memory is reduced");
  expect(attempts(int64_t{1} << 40, {1, 1, 1, 1}) == 3, "each attempt fits one more hop");
  const int tight = attempts(2000, {});
  expect(tight >= 1, "a capacity shrinks to the batch's need");
  expect(attempts(700, {}) == 0 && attempts(700, {1, 1, 1, 1}) == 0,
         "a batch beyond the memory fails");
}

void shrinking() {
  Numbers capacity{1000, 8, 100};
  expect(shrink(capacity, {0, 0, 200}) && capacity == Numbers{500, 4, 100},
         "capacities shrink halfway, but not below the need");
  int steps = 0;
  while (shrink(capacity, {400, 0, 0})) ++steps;
  expect(capacity[0] >= 400 && capacity[0] < 450 && steps < 10, "shrinking ends close to the need");
  Numbers nothing{0, 0};
  expect(!shrink(nothing, {0, 0}), "an empty capacity cannot shrink");
}

void tasks() {
  TaskWork batch{1000, 5000, 10, {4, 3}, true, 1, 0};
  expect(task_guess(batch) == Numbers{60, 190}, "tasks are the rows of all hops");
  batch.slots = 3;
  batch.chunks = 7;
  expect(task_guess(batch) == Numbers{74, 570}, "slots count as edges, chunks as tasks");
  batch.fanouts = {INT32_MAX, INT32_MAX, INT32_MAX};
  batch.each_edge_once = false;
  batch.num_nodes = int64_t{1} << 40;
  expect(task_guess(batch) == Numbers{1 << 24, 1 << 24}, "the first guess limits tasks and edges");
  batch.seeds = 0;
  expect(task_guess(batch)[kTasks] == 21 && task_guess(batch)[kTaskEdges] == 0,
         "without seeds only chunks need tasks");

  Numbers capacity{100, 200}, least{11, 0};
  expect(grow(capacity, least, {true, true}) && capacity == Numbers{1224, 1424} &&
             least == Numbers{101, 201},
         "a full capacity is doubled and raises its lower bound");
  capacity = {kMostTasks - 1, 0};
  expect(grow(capacity, least, {true, false}) && capacity == Numbers{kMostTasks, 0},
         "the maximum limits growth");
  expect(!grow(capacity, least, {true, false}), "a capacity at the maximum cannot grow");
}

void undo() {
  int undone = 0;
  {
    Undo guard([&] { ++undone; });
  }
  expect(undone == 1, "an armed guard runs its rollback");
  {
    Undo guard([&] { ++undone; });
    guard.armed = false;
  }
  expect(undone == 1, "a disarmed guard does not");
}

}  // namespace

int main() {
  capacities_of_a_guess();
  capacities_within_a_request();
  redo_of_an_overflow();
  batches_that_never_fit();
  batches_until_they_fit();
  shrinking();
  tasks();
  undo();
  return failed();
}
