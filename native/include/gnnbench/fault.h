// Faults of a batch. Kernels of both devices combine them with a bitwise or. bindings/fault.h
// throws the first one in bit order.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

enum class Fault : uint32_t {
  kNone = 0,
  kBadSeed = 1,        // a destination is not a node
  kBadRow = 2,         // a row's offsets decrease or point outside indices
  kBadTables = 4,      // an alias lies outside its row
  kBadNeighbor = 8,    // an entry of indices is not a node
  kNegativeId = 16,    // from an id map only, which has no graph
  kRepeatedSeed = 32,  // a destination appears twice
  // A capacity is too small: the caller samples the batch again with a larger one.
  kTasksFull = 64,
  kEdgesFull = 128,
  kNodesFull = 256,
};

// The faults that a larger capacity resolves.
constexpr uint32_t kCapacityFaults = 64 | 128 | 256;

GNNBENCH_HD constexpr uint32_t bits(Fault fault) { return static_cast<uint32_t>(fault); }
GNNBENCH_HD constexpr Fault operator|(Fault a, Fault b) {
  return static_cast<Fault>(bits(a) | bits(b));
}
GNNBENCH_HD constexpr bool has(Fault faults, Fault one) { return (bits(faults) & bits(one)) != 0; }

// A fault and, where known, the node whose row is broken.
struct FaultAt {
  Fault fault = Fault::kNone;
  int64_t node = -1;
};

}  // namespace gnnbench
