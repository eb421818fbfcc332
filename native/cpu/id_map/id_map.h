// Renaming of global ids, DGL's method (OrderedHashTable) on the CPU: insert every key with its
// smallest position, count the first occurrences, scan, compact, map. Local ids are the order of
// first occurrence, destinations first, for any number of threads: the smallest position of a key
// does not depend on who inserted it, whatever slot it lies in.
//
// The floor per edge: three random accesses to the table (insert, count, map), whose size goes
// with the hop and not with the graph, and 4 + 4 bytes streamed. Only the first thread to bring a
// key pays an atomic exchange.
#pragma once

#include <cstdint>

namespace gnnbench {

constexpr int64_t kKeyChunk = 4096;  // keys per unit of parallel work

// How a key finds its entry.
enum class TableKind {
  kDirect,   // the slot is the key and the entry a position: where a hash table would be no smaller
  kPacked,   // hashed, the entry is key << 32 | position: keys of 32 bits
  kIndirect  // hashed, the entry is a position whose key is looked up: any keys
};

struct IdMapSize {
  TableKind kind;
  int log2_slots;  // of the hash table
  int64_t slots;
  int64_t bytes() const { return slots * (kind == TableKind::kPacked ? 8 : 4); }
};

// For `keys` keys below `bound` (exclusive; an upper bound of the ids).
IdMapSize id_map_size(int64_t keys, uint64_t bound);

// What the passes share. local [num_neighbors] first holds the slots, then the local ids.
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

// Insert and count. Returns the number of source nodes, or -1 where dst holds an id twice.
template <class Id>
int64_t id_map_insert(const IdMapTask<Id>& task);

// Compact and map: fills src_nodes and local.
template <class Id>
void id_map_finish(const IdMapTask<Id>& task, Id* src_nodes);

}  // namespace gnnbench
