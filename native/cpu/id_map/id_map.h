// Relabelling of global ids by DGL's method (OrderedHashTable) on the CPU: insert every key with
// its smallest position, count the first occurrences, scan, compact, map. Local ids are in order of
// first occurrence, destinations first, for any number of threads: a key's smallest position
// depends neither on the inserting thread nor on the slot.
//
// Lower bound per edge: three random accesses to the table (insert, count, map), whose size depends
// on the hop and not on the graph, and 4 + 4 bytes streamed. Only the first thread that inserts a
// key needs an atomic exchange.
#pragma once

#include <cstdint>

namespace gnnbench {

constexpr int64_t kKeyChunk = 4096;  // keys per unit of parallel work

// How a key's entry is found.
enum class TableKind {
  kDirect,   // slot = key, entry = position; used where a hash table would not be smaller
  kPacked,   // hashed, entry = key << 32 | position: 32-bit keys
  kIndirect  // hashed, entry = position, through which the key is read: any keys
};

struct IdMapSize {
  TableKind kind;
  int log2_slots;  // of the hash table
  int64_t slots;
  int64_t bytes() const { return slots * (kind == TableKind::kPacked ? 8 : 4); }
};

// Table for `keys` keys below `bound`, an exclusive upper bound of the ids.
IdMapSize id_map_size(int64_t keys, uint64_t bound);

// Data that the passes share. local [num_neighbors] holds first the slots, then the local ids.
template <class Id>
struct IdMapTask {
  const Id* dst;
  int64_t num_dst;
  const Id* neighbors;
  int64_t num_neighbors;
  IdMapSize size;
  void* table;      // size.bytes()
  uint8_t* first;   // [num_neighbors] scratch
  int64_t* starts;  // [num_chunks(num_neighbors, kKeyChunk)] scratch
  int32_t* local;   // [num_neighbors] out
};

// Inserts and counts. Returns the number of source nodes, or -1 where dst contains an id twice.
template <class Id>
int64_t id_map_insert(const IdMapTask<Id>& task);

// Compacts and maps: writes src_nodes and local.
template <class Id>
void id_map_finish(const IdMapTask<Id>& task, Id* src_nodes);

}  // namespace gnnbench
