// Local ids by the versioned table (gnnbench/gnnlab.h), as in GNNLab: a hop's neighbours are
// inserted, new ones are ranked and compacted, and all are mapped. The table accumulates the hops
// of a batch, so that known nodes are looked up only.
//
// With one thread, new ids are in order of first occurrence. With more, the occurrence that a
// thread inserted first determines a node's id.
#pragma once

#include "cpu/common/parallel.h"
#include "gnnbench/gnnlab.h"

namespace gnnbench {

constexpr int64_t kVersionedChunk = 4096;  // keys per unit of parallel work

// Inserts the seeds, whose ids are their positions. Returns the position of a repeated one, or -1.
template <class Id>
int64_t versioned_seeds(const VersionedTable& table, const Id* seeds, int64_t n);

template <class Id>
struct VersionedHop {
  VersionedTable table;
  const Id* neighbors;  // [n]
  int64_t n;
  int64_t known;    // number of local ids assigned before
  int32_t* local;   // [n], first holds slots
  uint8_t* first;   // [n] scratch
  int64_t* starts;  // [num_chunks(n, kVersionedChunk)] scratch
};

// Returns the number of known and new nodes.
template <class Id>
int64_t versioned_insert(const VersionedHop<Id>& hop);

// Writes nodes from hop.known on, and local.
template <class Id>
void versioned_finish(const VersionedHop<Id>& hop, Id* nodes);

}  // namespace gnnbench
