// Maps from global to local ids that assign ids while they are filled. No thread waits for another:
// a thread that meets a node that is claimed but has no id yet returns a note, which the finish
// kernel resolves. Entries are read and written whole, by relaxed atomics of one size. Other data
// that a thread writes is read by later launches only, so no other ordering is needed.
//
// enter(id, edge, &at) returns
//   >= 0      the local id
//   kNew      the caller has claimed the node and must call name(at, id, local)
//   kTableFull   no slot is left
//   else      a note, for resolve(note, indices) in a later launch; `indices` hold `edge`
#pragma once

#include "cuda/common/atomics.cuh"
#include "cuda/fused_map/fused.h"
#include "gnnbench/fused_entry.h"

namespace gnnbench::cuda {

// Fibonacci hashing. The range is reduced by multiply and shift, so any number of slots works.
__device__ __forceinline__ uint32_t home_of(uint64_t id, uint32_t slots) {
  return __umulhi(static_cast<uint32_t>((id * 0x9E3779B97F4A7C15ull) >> 32), slots);
}

// Notes are inverted slots.
struct PackedTable {
  using Id = int32_t;
  uint64_t* entries;
  uint32_t slots;

  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr uint64_t kUnnamed = 0xFFFFFFFFull;

  __device__ int32_t enter(int32_t id, int64_t, uint32_t* at) const {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(id)) << 32;
    uint32_t slot = home_of(static_cast<uint32_t>(id), slots);
    for (uint32_t probes = 0; probes < slots; ++probes) {
      uint64_t entry = load_relaxed(entries + slot);
      if (entry == kEmpty) {
        entry = exchange_if(entries + slot, kEmpty, key | kUnnamed);
        if (entry == kEmpty) {
          *at = slot;
          return kNew;
        }
      }
      if ((entry ^ key) >> 32 == 0) {
        const int32_t local = static_cast<int32_t>(entry);
        return local >= 0 ? local : ~static_cast<int32_t>(slot);
      }
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
    return kTableFull;
  }

  __device__ void name(uint32_t at, int32_t id, uint32_t local, bool) const {
    store_relaxed(entries + at, static_cast<uint64_t>(static_cast<uint32_t>(id)) << 32 | local);
  }

  __device__ int32_t resolve(int32_t note, const int32_t*) const {
    return static_cast<int32_t>(entries[~note]);
  }
};

// The same without clearing, see gnnbench/fused_entry.h.
struct VersionedEntries {
  using Id = int32_t;
  uint64_t* entries;
  uint32_t slots;
  FusedEntries layout;

  __device__ uint64_t load(uint32_t slot) const { return load_relaxed(entries + slot); }
  __device__ uint64_t exchange_if(uint32_t slot, uint64_t expected, uint64_t wanted) const {
    return cuda::exchange_if(entries + slot, expected, wanted);
  }

  __device__ int32_t enter(int32_t id, int64_t, uint32_t* at) const {
    return layout.enter(*this, slots, home_of(static_cast<uint32_t>(id), slots), id, at);
  }

  // A node that is not recorded has a number that may not fit an entry.
  __device__ void name(uint32_t at, int32_t id, uint32_t local, bool recorded) const {
    if (recorded) store_relaxed(entries + at, layout.named(id, local));
  }

  __device__ int32_t resolve(int32_t note, const int32_t*) const {
    return static_cast<int32_t>(entries[~note] & FusedEntries::kUnnamed);
  }
};

// Keys and ids are separate because 8 bytes cannot hold both. An id is -1 until it is written.
struct WideTable {
  using Id = int64_t;
  unsigned long long* keys;
  int32_t* ids;
  uint32_t slots;

  static constexpr unsigned long long kEmpty = ~0ull;

  __device__ int32_t enter(int64_t id, int64_t, uint32_t* at) const {
    const unsigned long long key = static_cast<unsigned long long>(id);
    uint32_t slot = home_of(key, slots);
    for (uint32_t probes = 0; probes < slots; ++probes) {
      unsigned long long held = load_relaxed(keys + slot);
      if (held == kEmpty) {
        held = exchange_if(keys + slot, kEmpty, key);
        if (held == kEmpty) {
          *at = slot;
          return kNew;
        }
      }
      if (held == key) {
        const int32_t local = load_relaxed(ids + slot);
        return local >= 0 ? local : ~static_cast<int32_t>(slot);
      }
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
    return kTableFull;
  }

  __device__ void name(uint32_t at, int64_t, uint32_t local, bool) const {
    store_relaxed(ids + at, static_cast<int32_t>(local));
  }

  __device__ int32_t resolve(int32_t note, const int32_t*) const { return ids[~note]; }
};

// FastSample's map M. A claim is -2 - edge of the claiming thread; indices[edge] finally holds the
// node's local id. A note is that edge, inverted.
template <class VertexId>
struct DenseMap {
  using Id = VertexId;
  int32_t* ids;  // [num_nodes]

  __device__ int32_t enter(Id id, int64_t edge, uint32_t*) const {
    int32_t held = load_relaxed(ids + id);
    if (held == -1) {
      held = exchange_if(ids + id, -1, static_cast<int32_t>(-2 - edge));
      if (held == -1) return kNew;
    }
    return held >= 0 ? held : held + 1;
  }

  // An entry of a node that is not recorded would never be reset, so it is released at once.
  __device__ void name(uint32_t, Id id, uint32_t local, bool recorded) const {
    store_relaxed(ids + id, recorded ? static_cast<int32_t>(local) : -1);
  }

  __device__ int32_t resolve(int32_t note, const int32_t* indices) const { return indices[~note]; }

  __device__ void reset(Id id) const {
    if (id >= 0) ids[id] = -1;
  }
};

}  // namespace gnnbench::cuda
