// FastGL's Fused-Map on the CPU: a hash table that assigns ids while it inserts keys, so that no
// separate pass counts or numbers them (FastGL, section 4.2, Algorithm 2). The passes of
// fastsample/engine.h use it. Its memory grows with the batch, that of the dense map with the
// graph.
//
// Open addressing with linear probing; at least a third of the slots stay empty. Two widths:
//
//   int32 keys   uint64 [slots]                 key << 32 | id, all ones where empty
//   int64 keys   int64 [slots], int32 [slots]   keys, -1 where empty, and their ids, -1
//                                               until the inserting thread has written the id
//
// The thread whose exchange inserts a key assigns its id. A thread that finds a 64-bit key without
// an id waits for the pending store.
#pragma once

#include <bit>
#include <thread>

#include "cpu/fastsample/fastsample.h"

namespace gnnbench {

inline int64_t fused_map_slots(int64_t keys) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(keys + keys / 2 + 16)));
}

template <class Id>
constexpr int64_t kFusedMapSlotBytes = sizeof(Id) == 4 ? 8 : 12;

template <class Id>
class FusedMap {
 public:
  static constexpr int64_t kClaimAhead = 16;  // keys between a prefetch and its use
  static constexpr bool kClears = false;      // the memory is freed instead

  FusedMap() = default;

  // memory: slots * kFusedMapSlotBytes bytes, aligned to 8. An empty map has all bytes 0xFF.
  FusedMap(void* memory, int64_t slots)
      : keys_(static_cast<Key*>(memory)),
        ids_(reinterpret_cast<int32_t*>(keys_ + slots)),
        shift_(64 - std::countr_zero(static_cast<uint64_t>(slots))),
        mask_(static_cast<uint64_t>(slots) - 1) {}

  void prefetch(Id node) const { prefetch_entry(keys_ + slot(node), to_own_); }

  template <bool kShared>
  int64_t claim(const Id* keys, int64_t n, int32_t first, Id* fresh, int32_t* out) const {
    int64_t claimed = 0;
    for (int64_t e = 0; e < n; ++e) {
      prefetch(keys[std::min(e + kClaimAhead, n - 1)]);
      const int32_t mine = first + static_cast<int32_t>(claimed);
      const int32_t id = insert<kShared>(keys[e], mine);
      out[e] = id;
      fresh[claimed] = keys[e];
      claimed += id == mine;
    }
    return claimed;
  }

  void name(Id node, int32_t id) const {
    uint64_t at = slot(node);
    while (!holds(load(at), node)) at = (at + 1) & mask_;
    if constexpr (kPacked) {
      std::atomic_ref(keys_[at]).store(entry(node, id), std::memory_order_relaxed);
    } else {
      std::atomic_ref(ids_[at]).store(id, std::memory_order_relaxed);
    }
  }

  void clear(Id) const {}

 private:
  static constexpr bool kPacked = sizeof(Id) == 4;
  using Key = std::conditional_t<kPacked, uint64_t, int64_t>;
  static constexpr Key kEmpty = static_cast<Key>(-1);

  uint64_t slot(Id node) const {
    return (static_cast<uint64_t>(node) * 0x9E3779B97F4A7C15u) >> shift_;  // Fibonacci hashing
  }
  static Key entry(Id node, int32_t id) {
    if constexpr (kPacked) return static_cast<uint64_t>(node) << 32 | static_cast<uint32_t>(id);
    return node;
  }
  static bool holds(Key found, Id node) {
    if constexpr (kPacked) {
      return found >> 32 == static_cast<uint64_t>(node);
    } else {
      return found == node;
    }
  }
  Key load(uint64_t at) const { return std::atomic_ref(keys_[at]).load(std::memory_order_relaxed); }

  int32_t id_at(uint64_t at, Key found) const {
    if constexpr (kPacked) return static_cast<int32_t>(static_cast<uint32_t>(found));
    std::atomic_ref<int32_t> id(ids_[at]);
    int32_t value;
    while ((value = id.load(std::memory_order_relaxed)) == kUnclaimed) std::this_thread::yield();
    return value;
  }

  // Returns the key's id; inserts it with the id `mine` if it is absent.
  template <bool kShared>
  int32_t insert(Id node, int32_t mine) const {
    for (uint64_t at = slot(node);; at = (at + 1) & mask_) {
      Key found = load(at);
      if (found == kEmpty) {
        const Key wanted = entry(node, mine);
        if constexpr (kShared) {
          std::atomic_ref<Key> to(keys_[at]);
          if (to.compare_exchange_strong(found, wanted, std::memory_order_relaxed)) {
            if constexpr (!kPacked) {
              std::atomic_ref(ids_[at]).store(mine, std::memory_order_relaxed);
            }
            return mine;
          }
        } else {
          keys_[at] = wanted;
          if constexpr (!kPacked) ids_[at] = mine;
          return mine;
        }
      }
      if (holds(found, node)) return id_at(at, found);
    }
  }

  Key* keys_ = nullptr;
  int32_t* ids_ = nullptr;  // for int64 keys
  int shift_ = 0;
  uint64_t mask_ = 0;
  bool to_own_ = owns_lines();
};

// Clears a map's memory in parallel and inserts `known` nodes, whose ids are their positions.
template <class Id>
FusedMap<Id> new_fused_map(void* memory, int64_t slots, const Id* nodes, int64_t known);

}  // namespace gnnbench
