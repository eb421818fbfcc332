// Relabelling of global ids by DGL's method on the CPU, as its code does it: every pass probes the
// hash table for the node again, without prefetching. id_map.h remembers the slots. Local ids are
// the same: in order of first occurrence, destinations first. Hash function, probing and load, at
// most a half, are ours.
#pragma once

#include <cstdint>

namespace gnnbench {

// Number of slots of a table for `keys` ids, repeated ones too.
int64_t probing_slots(int64_t keys);

template <class Id>
struct ProbingMap {
  const Id* dst;
  int64_t num_dst;
  const Id* neighbors;  // ids of at least 0
  int64_t num_neighbors;
  int64_t slots;    // probing_slots(num_dst + num_neighbors)
  Id* keys;         // [slots]
  int32_t* values;  // [slots], first a node's smallest position, then its local id
  uint8_t* first;   // [num_neighbors] scratch
  int64_t* starts;  // [num_chunks(num_neighbors, kKeyChunk)] scratch
};

// Inserts and counts. Returns the number of source nodes, or -1 where dst contains an id twice.
template <class Id>
int64_t probing_insert(const ProbingMap<Id>& map);

// Numbers the new nodes and writes src_nodes.
template <class Id>
void probing_number(const ProbingMap<Id>& map, Id* src_nodes);

// Looks up the local ids of `ids` [n], which are in the map.
template <class Id>
void probing_find(const ProbingMap<Id>& map, const Id* ids, int64_t n, int32_t* local);

}  // namespace gnnbench
