// Converts faults to error messages, for all operators.
#pragma once

#include "bindings/checks.h"
#include "gnnbench/fault.h"

namespace gnnbench {

// Throws the first fault in bit order. Returns if there is none or only a capacity was too small.
// `seeds_name` is the name of the argument with the destinations.
inline void throw_on_fault(FaultAt found, int64_t num_nodes, const char* seeds_name = "seeds") {
  const Fault faults = found.fault;
  if (has(faults, Fault::kBadSeed)) {
    fail(seeds_name, " holds an id outside the graph, which has the nodes 0 to ", num_nodes - 1);
  }
  if (has(faults, Fault::kBadRow)) {
    const std::string where = found.node < 0 ? "" : " at node " + std::to_string(found.node);
    fail_data("indptr is broken", where,
              ": offsets must not decrease and must stay within indices");
  }
  if (has(faults, Fault::kBadTables)) {
    fail("weights holds the tables of another graph; build them again with weight_tables");
  }
  if (has(faults, Fault::kBadNeighbor)) {
    fail_data("indices holds an id that is not a node; the graph has the nodes 0 to ",
              num_nodes - 1);
  }
  if (has(faults, Fault::kNegativeId)) fail(seeds_name, " or neighbors holds a negative id");
  if (has(faults, Fault::kRepeatedSeed)) {
    fail(seeds_name, " holds an id twice; every destination must be unique");
  }
}

inline void throw_on_fault(Fault faults, int64_t num_nodes, const char* seeds_name = "seeds") {
  throw_on_fault(FaultAt{faults}, num_nodes, seeds_name);
}

// Reports kBadSeed if the id and its position are known.
[[noreturn]] inline void fail_bad_seed(int64_t id, int64_t position, int64_t num_nodes,
                                       const char* seeds_name) {
  fail(seeds_name, " holds the id ", id, " at position ", position,
       ", the graph has the nodes 0 to ", num_nodes - 1);
}

// Offsets and local ids of blocks are int32.
[[noreturn]] inline void fail_hop_edges(int64_t hop, int64_t edges) {
  fail("hop ", hop, " draws ", edges,
       " edges, int32 blocks hold 2^31 - 1; use a smaller batch or fanouts");
}

}  // namespace gnnbench
