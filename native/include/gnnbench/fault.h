// What can be wrong with a batch: found by kernels and loops of both devices, which or the faults
// together, and told by bindings/fault.h, of several the first in the order of their bits.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

enum class Fault : uint32_t {
  kNone = 0,
  kBadSeed = 1,        // a destination is no node
  kBadRow = 2,         // a row's offsets decrease or lead out of indices
  kBadTables = 4,      // an alias lies outside its row
  kBadNeighbor = 8,    // an entry of indices is no node
  kNegativeId = 16,    // of an id map alone, which knows of no graph
  kRepeatedSeed = 32,  // a destination is there twice
  // What the batch needs more room for than it was given: it is to be done again, larger.
  kTasksFull = 64,
  kEdgesFull = 128,
  kNodesFull = 256,
};

// Rooms that can be full.
constexpr uint32_t kFullRooms = 64 | 128 | 256;

GNNBENCH_HD constexpr uint32_t bits(Fault fault) { return static_cast<uint32_t>(fault); }
GNNBENCH_HD constexpr Fault operator|(Fault a, Fault b) {
  return static_cast<Fault>(bits(a) | bits(b));
}
GNNBENCH_HD constexpr bool has(Fault faults, Fault one) { return (bits(faults) & bits(one)) != 0; }

// With the node whose row is broken, where that is known.
struct FaultAt {
  Fault fault = Fault::kNone;
  int64_t node = -1;
};

}  // namespace gnnbench
