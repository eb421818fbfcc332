#include "cpu/gnnlab/gnnlab.h"

#include <atomic>

#include "cpu/common/prefetch.h"

namespace gnnbench {
namespace {

constexpr int64_t kAhead = 16;  // keys between a prefetch and its use

struct Inserted {
  uint64_t slot;
  bool fresh;
};

inline Inserted insert(const VersionedTable& table, int64_t vertex) {
  const uint64_t mine = table.entry(vertex);
  for (uint64_t slot = table.home(vertex);; slot = table.after(slot)) {
    std::atomic_ref<uint64_t> at(table.entries[slot]);
    uint64_t found = at.load(std::memory_order_relaxed);
    // One exchange is enough: if it fails, another thread has made the entry current.
    if (!table.current(found) &&
        at.compare_exchange_strong(found, mine, std::memory_order_relaxed)) {
      return {slot, true};
    }
    if (found == mine) return {slot, false};
  }
}

template <class Id>
inline void prefetch(const VersionedTable& table, const Id* keys, int64_t i, int64_t end,
                     bool to_own) {
  if (i + kAhead < end) prefetch_entry(table.entries + table.home(keys[i + kAhead]), to_own);
}

}  // namespace

template <class Id>
int64_t versioned_seeds(const VersionedTable& table, const Id* seeds, int64_t n) {
  const bool to_own = owns_lines();
  for (int64_t i = 0; i < n; ++i) {
    prefetch(table, seeds, i, n, to_own);
    const Inserted r = insert(table, seeds[i]);
    if (!r.fresh) return i;
    table.ids[r.slot] = static_cast<int32_t>(i);
  }
  return -1;
}

template <class Id>
int64_t versioned_insert(const VersionedHop<Id>& hop) {
  const bool to_own = owns_lines();
  parallel_chunks(hop.n, kVersionedChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t fresh = 0;
    for (int64_t e = begin; e < end; ++e) {
      prefetch(hop.table, hop.neighbors, e, end, to_own);
      const Inserted r = insert(hop.table, hop.neighbors[e]);
      hop.local[e] = static_cast<int32_t>(r.slot);
      hop.first[e] = r.fresh;
      fresh += r.fresh;
    }
    hop.starts[chunk] = fresh;
  });
  int64_t total = hop.known;
  for (int64_t c = 0, chunks = num_chunks(hop.n, kVersionedChunk); c < chunks; ++c) {
    const int64_t fresh = hop.starts[c];
    hop.starts[c] = total;
    total += fresh;
  }
  return total;
}

template <class Id>
void versioned_finish(const VersionedHop<Id>& hop, Id* nodes) {
  int32_t* const ids = hop.table.ids;
  parallel_chunks(hop.n, kVersionedChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t next = hop.starts[chunk];
    for (int64_t e = begin; e < end; ++e) {
      if (!hop.first[e]) continue;
      nodes[next] = hop.neighbors[e];
      ids[static_cast<uint32_t>(hop.local[e])] = static_cast<int32_t>(next++);
    }
  });
  parallel_chunks(hop.n, kVersionedChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      hop.local[e] = ids[static_cast<uint32_t>(hop.local[e])];
    }
  });
}

template int64_t versioned_seeds(const VersionedTable&, const int32_t*, int64_t);
template int64_t versioned_seeds(const VersionedTable&, const int64_t*, int64_t);
template int64_t versioned_insert(const VersionedHop<int32_t>&);
template int64_t versioned_insert(const VersionedHop<int64_t>&);
template void versioned_finish(const VersionedHop<int32_t>&, int32_t*);
template void versioned_finish(const VersionedHop<int64_t>&, int64_t*);

}  // namespace gnnbench
