// Local ids by the versioned table (gnnbench/gnnlab.h), GNNLab's way: a hop's neighbours are
// inserted, those that were new are ranked and compacted, all are mapped. The table accumulates the
// hops of a batch, so that known nodes are looked up and never inserted again.
//
// With one thread new ids are in order of first occurrence; with more, of several places of a node
// the one that a thread inserted counts.
#pragma once

#include "cpu/common/parallel.h"
#include "gnnbench/gnnlab.h"

namespace gnnbench {

constexpr int64_t kVersionedChunk = 4096;  // keys per unit of parallel work

// Inserts the seeds, whose places are their ids. Returns the place of a repeated one, or -1.
template <class Id>
int64_t versioned_seeds(const VersionedTable& table, const Id* seeds, int64_t n);

template <class Id>
struct VersionedHop {
  VersionedTable table;
  const Id* neighbors;  // [n]
  int64_t n;
  int64_t known;    // ids given out before
  int32_t* local;   // [n], slots at first
  uint8_t* first;   // [n] scratch
  int64_t* starts;  // [num_chunks(n, kVersionedChunk)] scratch
};

// Returns the number of nodes, old and new.
template <class Id>
int64_t versioned_insert(const VersionedHop<Id>& hop);

// Fills nodes from hop.known on, and local.
template <class Id>
void versioned_finish(const VersionedHop<Id>& hop, Id* nodes);

}  // namespace gnnbench
