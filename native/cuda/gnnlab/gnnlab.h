// Launchers of the versioned table (gnnbench/gnnlab.h). Plain pointers, no torch, no
// synchronisation.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/fault.h"
#include "gnnbench/gnnlab.h"

namespace gnnbench::cuda {

// A hop's neighbours and data that the passes share.
template <class Id>
struct VersionedHop {
  VersionedTable table;
  int64_t num_nodes;    // of the graph
  const Id* neighbors;  // [n]
  int64_t n;
  int32_t known;   // number of local ids assigned before
  int32_t* local;  // [n], first holds slots
  int32_t* ranks;  // [n + 2]
};

// Inserts the seeds, whose ids are their positions. Clears *faults and reports kRepeatedSeed there.
template <class Id>
void versioned_seeds(Launch launch, VersionedTable table, const Id* seeds, int64_t n,
                     int32_t* faults);

// Inserts. After an exclusive scan over ranks[0..n] (n + 1 items) ranks[n] is the number of new
// nodes and ranks[n + 1] the faults: `seeds_faults` of versioned_seeds, unless null, and
// `hop_faults` of the hop that drew the neighbours, both on the device.
template <class Id>
void versioned_insert(Launch launch, VersionedHop<Id> hop, const int32_t* seeds_faults,
                      const int64_t* hop_faults);

// Compacts and maps: writes nodes [known + ranks[n]] from `known` on, and local.
template <class Id>
void versioned_finish(Launch launch, VersionedHop<Id> hop, Id* nodes);

}  // namespace gnnbench::cuda
