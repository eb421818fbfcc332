#include "cpu/id_map.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "cpu/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kAhead = 16;  // keys between a prefetch and its use
constexpr int64_t kClearChunk = 1 << 16;

// Open addressing with linear probing; a position is the key's place in dst followed by neighbors.
// Packed entries carry the key; the smallest entry of a key is the one of smallest position.
template <class Id>
class PackedTable {
 public:
  using Entry = uint64_t;
  static constexpr Entry kEmpty = ~Entry{0};

  explicit PackedTable(const IdMapTask<Id>& t) : entries_(static_cast<Entry*>(t.table)) {}

  Entry entry(Id key, uint32_t position) const {
    return static_cast<uint64_t>(key) << 32 | position;
  }
  bool same(Entry found, Id key) const { return found >> 32 == static_cast<uint64_t>(key); }
  Entry* entries() const { return entries_; }

 private:
  Entry* entries_;
};

template <class Id>
class IndirectTable {
 public:
  using Entry = uint32_t;
  static constexpr Entry kEmpty = ~Entry{0};

  explicit IndirectTable(const IdMapTask<Id>& t)
      : entries_(static_cast<Entry*>(t.table)),
        dst_(t.dst),
        num_dst_(t.num_dst),
        neighbors_(t.neighbors) {}

  Entry entry(Id, uint32_t position) const { return position; }
  bool same(Entry found, Id key) const {
    return (found < num_dst_ ? dst_[found] : neighbors_[found - num_dst_]) == key;
  }
  Entry* entries() const { return entries_; }

 private:
  Entry* entries_;
  const Id* dst_;
  int64_t num_dst_;
  const Id* neighbors_;
};

inline uint32_t slot_of(uint64_t key, int shift) {
  return static_cast<uint32_t>((key * 0x9E3779B97F4A7C15u) >> shift);  // Fibonacci hashing
}

struct Inserted {
  uint32_t slot;
  bool smallest;  // no smaller position of this key was there yet
};

template <class Table, class Id>
inline Inserted insert(const Table& table, Id key, uint32_t position, int shift, uint32_t mask) {
  using Entry = typename Table::Entry;
  const Entry mine = table.entry(key, position);
  uint32_t slot = slot_of(static_cast<uint64_t>(key), shift);
  for (;; slot = (slot + 1) & mask) {
    std::atomic_ref<Entry> at(table.entries()[slot]);
    Entry found = at.load(std::memory_order_relaxed);
    if (found == Table::kEmpty &&
        at.compare_exchange_strong(found, mine, std::memory_order_relaxed)) {
      return {slot, true};
    }
    if (!table.same(found, key)) continue;
    while (mine < found) {
      if (at.compare_exchange_weak(found, mine, std::memory_order_relaxed)) return {slot, true};
    }
    return {slot, false};
  }
}

template <class Table, class Id>
int64_t insert_all(const IdMapTask<Id>& t) {
  const Table table(t);
  using Entry = typename Table::Entry;
  const int shift = 64 - t.size.log2_slots;
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << t.size.log2_slots) - 1);
  const uint32_t num_dst = static_cast<uint32_t>(t.num_dst);
  parallel_chunks(t.size.bytes(), kClearChunk, [&](int64_t, int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(t.table) + begin, 0xFF, static_cast<size_t>(end - begin));
  });

  const auto prefetch = [&](const Id* keys, int64_t i, int64_t end) {
    if (i + kAhead < end) {
      __builtin_prefetch(table.entries() + slot_of(static_cast<uint64_t>(keys[i + kAhead]), shift),
                         1);
    }
  };
  std::atomic<bool> unique{true};
  parallel_chunks(t.num_dst, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      prefetch(t.dst, i, end);
      // A key that is there already, with either order of positions, occurs twice.
      const Entry mine = table.entry(t.dst[i], static_cast<uint32_t>(i));
      uint32_t slot = slot_of(static_cast<uint64_t>(t.dst[i]), shift);
      for (;; slot = (slot + 1) & mask) {
        std::atomic_ref<Entry> at(table.entries()[slot]);
        Entry found = at.load(std::memory_order_relaxed);
        if (found == Table::kEmpty &&
            at.compare_exchange_strong(found, mine, std::memory_order_relaxed)) {
          break;
        }
        if (table.same(found, t.dst[i])) {
          unique.store(false, std::memory_order_relaxed);
          break;
        }
      }
    }
  });
  if (!unique.load()) return -1;

  parallel_chunks(t.num_neighbors, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      prefetch(t.neighbors, e, end);
      const Inserted r =
          insert(table, t.neighbors[e], num_dst + static_cast<uint32_t>(e), shift, mask);
      t.local[e] = static_cast<int32_t>(r.slot);
      t.first[e] = r.smallest;
    }
  });

  // Only keys that were smallest when inserted can still be.
  parallel_chunks(t.num_neighbors, kKeyChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t firsts = 0;
    for (int64_t e = begin; e < end; ++e) {
      if (!t.first[e]) continue;
      const Entry found = table.entries()[static_cast<uint32_t>(t.local[e])];
      t.first[e] = static_cast<uint32_t>(found) == num_dst + static_cast<uint32_t>(e);
      firsts += t.first[e];
    }
    t.starts[chunk] = firsts;
  });
  int64_t total = t.num_dst;
  for (int64_t c = 0, chunks = num_chunks(t.num_neighbors, kKeyChunk); c < chunks; ++c) {
    const int64_t firsts = t.starts[c];
    t.starts[c] = total;
    total += firsts;
  }
  return total;
}

template <class Table, class Id>
void finish(const IdMapTask<Id>& t, Id* src_nodes) {
  using Entry = typename Table::Entry;
  Entry* entries = static_cast<Entry*>(t.table);
  parallel_chunks(t.num_dst, kKeyChunk * 4, [&](int64_t, int64_t begin, int64_t end) {
    std::copy(t.dst + begin, t.dst + end, src_nodes + begin);
  });
  // An entry's position becomes the local id; a destination's position is its local id already.
  parallel_chunks(t.num_neighbors, kKeyChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t next = t.starts[chunk];
    for (int64_t e = begin; e < end; ++e) {
      if (!t.first[e]) continue;
      src_nodes[next] = t.neighbors[e];
      entries[static_cast<uint32_t>(t.local[e])] = static_cast<Entry>(next);
      ++next;
    }
  });
  parallel_chunks(t.num_neighbors, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      t.local[e] =
          static_cast<int32_t>(static_cast<uint32_t>(entries[static_cast<uint32_t>(t.local[e])]));
    }
  });
}

}  // namespace

IdMapSize id_map_size(int64_t keys, uint64_t bound) {
  const uint64_t distinct = std::min<uint64_t>(static_cast<uint64_t>(keys), bound);
  const uint64_t slots = std::bit_ceil(distinct + distinct / 2 + 16);
  return {bound <= UINT32_MAX, std::countr_zero(slots)};
}

template <class Id>
int64_t id_map_insert(const IdMapTask<Id>& task) {
  return task.size.packed ? insert_all<PackedTable<Id>>(task) : insert_all<IndirectTable<Id>>(task);
}

template <class Id>
void id_map_finish(const IdMapTask<Id>& task, Id* src_nodes) {
  if (task.size.packed) {
    finish<PackedTable<Id>>(task, src_nodes);
  } else {
    finish<IndirectTable<Id>>(task, src_nodes);
  }
}

template int64_t id_map_insert(const IdMapTask<int32_t>&);
template int64_t id_map_insert(const IdMapTask<int64_t>&);
template void id_map_finish(const IdMapTask<int32_t>&, int32_t*);
template void id_map_finish(const IdMapTask<int64_t>&, int64_t*);

}  // namespace gnnbench
