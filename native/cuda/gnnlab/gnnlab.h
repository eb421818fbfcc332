// Launchers of the versioned table: see gnnbench/gnnlab.h for what it is. Plain pointers, no
// torch; nothing waits.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/fault.h"
#include "gnnbench/gnnlab.h"

namespace gnnbench::cuda {

// A hop's neighbours, and what its passes share.
template <class Id>
struct VersionedHop {
  VersionedTable table;
  int64_t num_nodes;    // of the graph
  const Id* neighbors;  // [n]
  int64_t n;
  int32_t known;   // ids given out before
  int32_t* local;  // [n], slots at first
  int32_t* ranks;  // [n + 2]
};

// Inserts the seeds, whose places are their ids; kRepeatedSeed in *faults, which are cleared here.
template <class Id>
void versioned_seeds(Launch launch, VersionedTable table, const Id* seeds, int64_t n,
                     int32_t* faults);

// Insertion: after an exclusive scan over ranks[0..n] (n + 1 items) ranks[n] is the number of new
// nodes, ranks[n + 1] the faults: `seeds_faults` of versioned_seeds, unless null, and `hop_faults`
// of the hop that drew the neighbours, both on the device.
template <class Id>
void versioned_insert(Launch launch, VersionedHop<Id> hop, const int32_t* seeds_faults,
                      const int64_t* hop_faults);

// Compaction and mapping: nodes [known + ranks[n]] from `known` on, and local.
template <class Id>
void versioned_finish(Launch launch, VersionedHop<Id> hop, Id* nodes);

}  // namespace gnnbench::cuda
