#include "cpu/id_map/probing.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "cpu/common/parallel.h"
#include "cpu/id_map/id_map.h"

namespace gnnbench {
namespace {

constexpr int64_t kClearChunk = 1 << 14;
constexpr int32_t kNoValue = INT32_MAX;

template <class Id>
constexpr Id kNoKey = -1;

template <class Id>
int64_t slot_of(const ProbingMap<Id>& map, Id key) {
  const auto hashed = static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u;  // Fibonacci
  return static_cast<int64_t>(hashed >> (64 - std::countr_zero(static_cast<uint64_t>(map.slots))));
}

template <class Id>
int64_t slot_after(const ProbingMap<Id>& map, int64_t slot) {
  return (slot + 1) & (map.slots - 1);
}

template <class Id>
int32_t& value_of(const ProbingMap<Id>& map, Id key) {
  int64_t slot = slot_of(map, key);
  while (map.keys[slot] != key) slot = slot_after(map, slot);
  return map.values[slot];
}

struct Inserted {
  bool smallest;  // the key had no smaller position before
  bool found;     // the key was already present
};

template <class Id>
Inserted insert(const ProbingMap<Id>& map, Id key, int32_t position) {
  for (int64_t slot = slot_of(map, key);; slot = slot_after(map, slot)) {
    std::atomic_ref<Id> at(map.keys[slot]);
    Id present = at.load(std::memory_order_relaxed);
    const bool inserts = present == kNoKey<Id> &&
                         at.compare_exchange_strong(present, key, std::memory_order_relaxed);
    if (!inserts && present != key) continue;
    std::atomic_ref<int32_t> value(map.values[slot]);
    int32_t seen = value.load(std::memory_order_relaxed);
    while (position < seen) {
      if (value.compare_exchange_weak(seen, position, std::memory_order_relaxed)) {
        return {true, !inserts};
      }
    }
    return {false, !inserts};
  }
}

}  // namespace

int64_t probing_slots(int64_t keys) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * keys + 2)));
}

template <class Id>
int64_t probing_insert(const ProbingMap<Id>& map) {
  parallel_chunks(map.slots, kClearChunk, [&](int64_t, int64_t begin, int64_t end) {
    std::fill(map.keys + begin, map.keys + end, kNoKey<Id>);
    std::fill(map.values + begin, map.values + end, kNoValue);
  });
  std::atomic<bool> unique{true};
  parallel_chunks(map.num_dst, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (insert(map, map.dst[i], static_cast<int32_t>(i)).found) unique.store(false);
    }
  });
  if (!unique.load()) return -1;
  parallel_chunks(map.num_neighbors, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const auto position = static_cast<int32_t>(map.num_dst + e);
      map.first[e] = insert(map, map.neighbors[e], position).smallest;
    }
  });
  // Only keys that had the smallest position when inserted can still have it.
  parallel_chunks(map.num_neighbors, kKeyChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t firsts = 0;
    for (int64_t e = begin; e < end; ++e) {
      if (!map.first[e]) continue;
      map.first[e] = value_of(map, map.neighbors[e]) == map.num_dst + e;
      firsts += map.first[e];
    }
    map.starts[chunk] = firsts;
  });
  int64_t total = map.num_dst;
  for (int64_t c = 0, chunks = num_chunks(map.num_neighbors, kKeyChunk); c < chunks; ++c) {
    const int64_t firsts = map.starts[c];
    map.starts[c] = total;
    total += firsts;
  }
  return total;
}

template <class Id>
void probing_number(const ProbingMap<Id>& map, Id* src_nodes) {
  std::copy_n(map.dst, map.num_dst, src_nodes);
  parallel_chunks(map.num_neighbors, kKeyChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t next = map.starts[chunk];
    for (int64_t e = begin; e < end; ++e) {
      if (!map.first[e]) continue;
      src_nodes[next] = map.neighbors[e];
      value_of(map, map.neighbors[e]) = static_cast<int32_t>(next++);
    }
  });
}

template <class Id>
void probing_find(const ProbingMap<Id>& map, const Id* ids, int64_t n, int32_t* local) {
  parallel_chunks(n, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) local[e] = value_of(map, ids[e]);
  });
}

template int64_t probing_insert(const ProbingMap<int32_t>&);
template int64_t probing_insert(const ProbingMap<int64_t>&);
template void probing_number(const ProbingMap<int32_t>&, int32_t*);
template void probing_number(const ProbingMap<int64_t>&, int64_t*);
template void probing_find(const ProbingMap<int32_t>&, const int32_t*, int64_t, int32_t*);
template void probing_find(const ProbingMap<int64_t>&, const int64_t*, int64_t, int32_t*);

}  // namespace gnnbench
