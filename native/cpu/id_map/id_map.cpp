#include "cpu/id_map/id_map.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "cpu/common/prefetch.h"

namespace gnnbench {
namespace {

constexpr int64_t kAhead = 16;  // keys between a prefetch and its use
constexpr int64_t kClearChunk = 1 << 16;

// Open addressing with linear probing. A position is the key's index in dst followed by neighbors.
// Of two entries with one key, the one with the smaller position compares smaller.
inline uint32_t hashed_slot(uint64_t key, int log2_slots) {
  return static_cast<uint32_t>((key * 0x9E3779B97F4A7C15u) >> (64 - log2_slots));  // Fibonacci
}

template <class Id>
struct DirectTable {
  using Entry = uint32_t;
  static constexpr Entry kEmpty = ~Entry{0};

  explicit DirectTable(const IdMapTask<Id>& t) : entries(static_cast<Entry*>(t.table)) {}
  uint32_t slot(Id key) const { return static_cast<uint32_t>(key); }
  uint32_t after(uint32_t slot) const { return slot; }
  Entry entry(Id, uint32_t position) const { return position; }
  bool same(Entry, Id) const { return true; }

  Entry* entries;
};

template <class Id>
struct PackedTable {
  using Entry = uint64_t;
  static constexpr Entry kEmpty = ~Entry{0};

  explicit PackedTable(const IdMapTask<Id>& t)
      : entries(static_cast<Entry*>(t.table)), log2_slots(t.size.log2_slots) {}
  uint32_t slot(Id key) const { return hashed_slot(static_cast<uint64_t>(key), log2_slots); }
  uint32_t after(uint32_t slot) const {
    return (slot + 1) & static_cast<uint32_t>((uint64_t{1} << log2_slots) - 1);
  }
  Entry entry(Id key, uint32_t position) const {
    return static_cast<uint64_t>(key) << 32 | position;
  }
  bool same(Entry found, Id key) const { return found >> 32 == static_cast<uint64_t>(key); }

  Entry* entries;
  int log2_slots;
};

template <class Id>
struct IndirectTable {
  using Entry = uint32_t;
  static constexpr Entry kEmpty = ~Entry{0};

  explicit IndirectTable(const IdMapTask<Id>& t)
      : entries(static_cast<Entry*>(t.table)), task(&t) {}
  uint32_t slot(Id key) const {
    return hashed_slot(static_cast<uint64_t>(key), task->size.log2_slots);
  }
  uint32_t after(uint32_t slot) const {
    return (slot + 1) & static_cast<uint32_t>((uint64_t{1} << task->size.log2_slots) - 1);
  }
  Entry entry(Id, uint32_t position) const { return position; }
  bool same(Entry found, Id key) const {
    return (found < task->num_dst ? task->dst[found] : task->neighbors[found - task->num_dst]) ==
           key;
  }

  Entry* entries;
  const IdMapTask<Id>* task;
};

struct Inserted {
  uint32_t slot;
  bool smallest;  // the key had no smaller position before
  bool found;     // the key was already present
};

template <class Table, class Id>
inline Inserted insert(const Table& table, Id key, uint32_t position) {
  using Entry = typename Table::Entry;
  const Entry mine = table.entry(key, position);
  for (uint32_t slot = table.slot(key);; slot = table.after(slot)) {
    std::atomic_ref<Entry> at(table.entries[slot]);
    Entry found = at.load(std::memory_order_relaxed);
    if (found == Table::kEmpty &&
        at.compare_exchange_strong(found, mine, std::memory_order_relaxed)) {
      return {slot, true, false};
    }
    if (!table.same(found, key)) continue;
    while (mine < found) {
      if (at.compare_exchange_weak(found, mine, std::memory_order_relaxed)) {
        return {slot, true, true};
      }
    }
    return {slot, false, true};
  }
}

template <class Table, class Id>
int64_t insert_all(const IdMapTask<Id>& t) {
  const Table table(t);
  using Entry = typename Table::Entry;
  const uint32_t num_dst = static_cast<uint32_t>(t.num_dst);
  parallel_chunks(t.size.bytes(), kClearChunk, [&](int64_t, int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(t.table) + begin, 0xFF, static_cast<size_t>(end - begin));
  });

  const bool to_own = owns_lines();
  const auto prefetch = [&](const Id* keys, int64_t i, int64_t end) {
    if (i + kAhead < end) prefetch_entry(table.entries + table.slot(keys[i + kAhead]), to_own);
  };
  std::atomic<bool> unique{true};
  parallel_chunks(t.num_dst, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    bool repeated = false;
    for (int64_t i = begin; i < end; ++i) {
      prefetch(t.dst, i, end);
      repeated |= insert(table, t.dst[i], static_cast<uint32_t>(i)).found;
    }
    if (repeated) unique.store(false, std::memory_order_relaxed);
  });
  if (!unique.load()) return -1;

  parallel_chunks(t.num_neighbors, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      prefetch(t.neighbors, e, end);
      const Inserted r = insert(table, t.neighbors[e], num_dst + static_cast<uint32_t>(e));
      t.local[e] = static_cast<int32_t>(r.slot);
      t.first[e] = r.smallest;
    }
  });

  // Only keys that had the smallest position when inserted can still have it.
  parallel_chunks(t.num_neighbors, kKeyChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t firsts = 0;
    for (int64_t e = begin; e < end; ++e) {
      if (!t.first[e]) continue;
      const Entry found = table.entries[static_cast<uint32_t>(t.local[e])];
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
  // Replaces an entry's position by the local id. A destination's position is already its local id.
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
  if (bound <= slots) return {TableKind::kDirect, 0, static_cast<int64_t>(bound)};
  return {bound <= UINT32_MAX ? TableKind::kPacked : TableKind::kIndirect, std::countr_zero(slots),
          static_cast<int64_t>(slots)};
}

template <class Id>
int64_t id_map_insert(const IdMapTask<Id>& task) {
  switch (task.size.kind) {
    case TableKind::kDirect: return insert_all<DirectTable<Id>>(task);
    case TableKind::kPacked: return insert_all<PackedTable<Id>>(task);
    default: return insert_all<IndirectTable<Id>>(task);
  }
}

template <class Id>
void id_map_finish(const IdMapTask<Id>& task, Id* src_nodes) {
  switch (task.size.kind) {
    case TableKind::kDirect: return finish<DirectTable<Id>>(task, src_nodes);
    case TableKind::kPacked: return finish<PackedTable<Id>>(task, src_nodes);
    default: return finish<IndirectTable<Id>>(task, src_nodes);
  }
}

template int64_t id_map_insert(const IdMapTask<int32_t>&);
template int64_t id_map_insert(const IdMapTask<int64_t>&);
template void id_map_finish(const IdMapTask<int32_t>&, int32_t*);
template void id_map_finish(const IdMapTask<int64_t>&, int64_t*);

}  // namespace gnnbench
