// The id map in three passes (insert, rank, map), in order of first occurrence. The passes after
// the first find a key's slot where the first one stored it, or probe the table again, as DGL's do.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"
#include "gnnbench/fault.h"
#include "gnnbench/hd.h"

namespace gnnbench::cuda {

// Maximum number of items per map: values start as bytes of 0x7F, which must exceed every position.
constexpr int64_t kIdMapMaxItems = 0x7F7F7F7F;

// Items are dst (without repeats), then neighbors: `n` in all, at most kIdMapMaxItems.
template <class Id>
struct IdMapItems {
  const Id* dst;
  int64_t num_dst;
  const Id* neighbors;
  int64_t num_neighbors;

  GNNBENCH_HD int64_t size() const { return num_dst + num_neighbors; }
};

// Open-addressing table and the per-item arrays of the passes.
template <class Id>
struct IdMapScratch {
  Id* keys;           // [capacity], -1: empty
  int32_t* values;    // [capacity], smallest position of the key, later its local id
  uint32_t* slot_of;  // [n], the table slot of each item; null: each pass probes the table again
  int32_t* ranks;     // [n + 2]
  int64_t capacity;   // id_map_capacity(n)
};

// A power of two, at least twice the number of items, so that probing always finds an empty slot.
int64_t id_map_capacity(int64_t n);

// Pass 1 and the flags of pass 2. After an exclusive scan over ranks[0..n] (n + 1 items), ranks[i]
// is the local id of a first occurrence, ranks[n] the number of nodes and ranks[n + 1] the faults:
// kNegativeId, kRepeatedSeed and, unless null, `hop_faults` of the hop that drew the neighbours, on
// the device.
template <class Id>
void id_map_insert(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch,
                   const int64_t* hop_faults);

// Rest of pass 2 (compact) and pass 3 (map): src_nodes [ranks[n]], local int32 [num_neighbors].
template <class Id>
void id_map_finish(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch, Id* src_nodes,
                   int32_t* local);

// After id_map_finish, by probing: the local ids of `n` other ids, which must all be in the table.
template <class Id>
void id_map_find(Launch launch, IdMapScratch<Id> scratch, const Id* ids, int64_t n, int32_t* local);

}  // namespace gnnbench::cuda
