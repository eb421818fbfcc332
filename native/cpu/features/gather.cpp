#include "cpu/features/gather.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kChunkBytes = 1 << 18;
constexpr int64_t kAheadBytes = 1 << 15;  // prefetch distance

// Sources of rows. find() returns false for an invalid id. soon() prefetches what find() will read.
// served() is called after each row is copied.
struct InTable {
  const char* rows;
  uint64_t count;
  int64_t bytes;

  [[gnu::always_inline]] bool find(int64_t id, const char*& row) const {
    const auto at = static_cast<uint64_t>(id);
    // Unsigned arithmetic, because an invalid id overflows.
    row = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(rows) +
                                        at * static_cast<uint64_t>(bytes));
    return at < count;
  }
  void soon(int64_t) const {}
  void served(int64_t, int64_t) const {}
};

struct InKept {
  InTable table;
  Kept kept;
  int64_t hits = 0;

  [[gnu::always_inline]] bool known(int64_t id) const {
    return kept.generations[id] == kept.generation &&
           static_cast<uint64_t>(static_cast<int64_t>(kept.slots[id])) <
               static_cast<uint64_t>(kept.count);
  }
  [[gnu::always_inline]] bool find(int64_t id, const char*& row) const {
    if (!table.find(id, row)) return false;
    if (known(id)) row = kept.rows + kept.slots[id] * table.bytes;
    return true;
  }
  [[gnu::always_inline]] void soon(int64_t id) const {
    if (static_cast<uint64_t>(id) >= table.count) return;
    __builtin_prefetch(kept.generations + id);
    __builtin_prefetch(kept.slots + id);
  }
  [[gnu::always_inline]] void served(int64_t id, int64_t place) {
    hits += known(id);
    if (!kept.remember) return;
    kept.slots[id] = static_cast<int32_t>(place);
    kept.generations[id] = kept.generation + 1;
  }
};

// Iterates over the rows of ids[begin, end), in order.
template <class Id, class Source>
struct Rows {
  Source* source;
  int64_t bytes;
  const Id* ids;
  int64_t begin, end;

  // Calls append(row) for each row. Returns the first position of an invalid id, or -1. The loop
  // has few live values, so that all stay in registers: a load from the stack would wait for
  // earlier stores whose addresses have the same low bits.
  template <class Append>
  [[gnu::always_inline]] int64_t each(Append append) const {
    Source from = *source;
    const int64_t width = bytes;
    const Id* const last = ids + end;
    const Id* id = ids + begin;
    const Id* next = id;
    const Id* soon = id;
    // Prefetches into L2: L1 has too few outstanding requests to hide the memory latency.
    // always_inline: GCC otherwise treats a function that only prefetches as one without effect.
    const auto ask = [&]() __attribute__((always_inline)) {
      const char* line;
      if (!from.find(*next++, line)) return;
      const char* const stop = line + width;
      line -= reinterpret_cast<uintptr_t>(line) % kLine;
      for (; line < stop; line += kLine) __builtin_prefetch(line, 0, 2);
    };
    const int64_t ahead = std::clamp<int64_t>(kAheadBytes / std::max<int64_t>(width, 1), 1, 64);
    while (soon < last && soon < id + 2 * ahead) from.soon(*soon++);
    while (next < last && next < id + ahead) ask();
    int64_t wrong = -1;
    for (; id < last; ++id) {
      if (soon < last) from.soon(*soon++);
      if (next < last) ask();
      const char* row;
      if (!from.find(*id, row)) {
        wrong = id - ids;
        break;
      }
      append(row);
      from.served(*id, id - ids);
    }
    *source = from;
    return wrong;
  }
};

template <class Id, class Source>
int64_t cached(const Rows<Id, Source>& rows, char* to) {
  const int64_t bytes = rows.bytes;
  return rows.each([=](const char* row) mutable {
    if (bytes > 0) std::memcpy(to, row, static_cast<size_t>(bytes));  // an empty table can be null
    to += bytes;
  });
}

#ifdef GNNBENCH_X86
// Rows that consist of whole lines, to a line-aligned address.
template <class Line, class Id, class Source>
[[gnu::always_inline]] inline int64_t lines(const Rows<Id, Source>& rows, char* to) {
  const int64_t bytes = rows.bytes;
  return rows.each([=](const char* row) mutable __attribute__((always_inline)) {
    for (int64_t b = 0; b < bytes; b += kLine) Line()(to + b, row + b);
    to += bytes;
  });
}

template <class Id, class Source>
GNNBENCH_AVX512 int64_t lines_avx512(const Rows<Id, Source>& rows, char* to) {
  return lines<LineAvx512>(rows, to);
}

template <class Id, class Source>
GNNBENCH_AVX2 int64_t lines_avx2(const Rows<Id, Source>& rows, char* to) {
  return lines<LineAvx2>(rows, to);
}

template <class Id, class Source>
int64_t streamed(const Rows<Id, Source>& rows, char* to, Stores stores) {
  int64_t wrong;
  if (rows.bytes % kLine == 0 && reinterpret_cast<uintptr_t>(to) % kLine == 0) {
    wrong = stores == Stores::kAvx512 ? lines_avx512(rows, to) : lines_avx2(rows, to);
  } else {
    LineWriter writer(to, stores);
    wrong = rows.each([&](const char* row) { writer.append(row, rows.bytes); });
    writer.finish();
  }
  _mm_sfence();
  return wrong;
}
#else
template <class Id, class Source>
int64_t streamed(const Rows<Id, Source>& rows, char* to, Stores) {
  return cached(rows, to);
}
#endif

// Copies all rows. Calls done(source) with each chunk's source once the chunk is copied.
template <class Id, class Source, class Done>
int64_t copy_rows(const Source& source, int64_t row_bytes, const Id* ids, int64_t n, char* out,
                  Stores stores, const Done& done) {
  std::atomic<int64_t> bad{INT64_MAX};
  const int64_t chunk = std::max<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1), 16);
  parallel_chunks(n, chunk, [&](int64_t, int64_t begin, int64_t end) {
    Source mine = source;
    const Rows<Id, Source> from{&mine, row_bytes, ids, begin, end};
    char* const to = out + begin * row_bytes;
    const int64_t wrong = stores == Stores::kCached ? cached(from, to) : streamed(from, to, stores);
    done(mine);
    int64_t seen = bad.load(std::memory_order_relaxed);
    while (wrong >= 0 && wrong < seen && !bad.compare_exchange_weak(seen, wrong)) {
    }
  });
  return bad.load() == INT64_MAX ? -1 : bad.load();
}

}  // namespace

template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out, Stores stores) {
  const InTable source{table, static_cast<uint64_t>(rows), row_bytes};
  return copy_rows(source, row_bytes, ids, n, out, stores, [](const InTable&) {});
}

template <class Id>
int64_t gather_rows_to(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                       const int32_t* places, int64_t out_rows, char* out) {
  const InTable source{table, static_cast<uint64_t>(rows), row_bytes};
  std::atomic<int64_t> bad{INT64_MAX};
  const int64_t chunk = std::max<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1), 16);
  parallel_chunks(n, chunk, [&](int64_t, int64_t begin, int64_t end) {
    InTable mine = source;
    const Rows<Id, InTable> from{&mine, row_bytes, ids, begin, end};
    int64_t i = begin, wrong = -1;
    const int64_t wrong_id = from.each([&](const char* row) {
      const int64_t place = places[i++];
      if (place < 0 || place >= out_rows) {
        wrong = wrong < 0 ? i - 1 : wrong;
      } else if (row_bytes > 0) {  // an empty table can be null
        std::memcpy(out + place * row_bytes, row, static_cast<size_t>(row_bytes));
      }
    });
    if (wrong < 0) wrong = wrong_id;
    int64_t seen = bad.load(std::memory_order_relaxed);
    while (wrong >= 0 && wrong < seen && !bad.compare_exchange_weak(seen, wrong)) {
    }
  });
  return bad.load() == INT64_MAX ? -1 : bad.load();
}

template <class Id>
int64_t gather_rows_over(const char* table, int64_t rows, int64_t row_bytes, const Kept& kept,
                         const Id* ids, int64_t n, char* out, int64_t* hits, Stores stores) {
  const InKept source{{table, static_cast<uint64_t>(rows), row_bytes}, kept};
  std::atomic<int64_t> found{0};
  const int64_t bad = copy_rows(source, row_bytes, ids, n, out, stores,
                                [&](const InKept& mine) { found.fetch_add(mine.hits); });
  *hits += found.load();
  return bad;
}

template int64_t gather_rows(const char*, int64_t, int64_t, const int32_t*, int64_t, char*, Stores);
template int64_t gather_rows(const char*, int64_t, int64_t, const int64_t*, int64_t, char*, Stores);
template int64_t gather_rows_to(const char*, int64_t, int64_t, const int32_t*, int64_t,
                                const int32_t*, int64_t, char*);
template int64_t gather_rows_to(const char*, int64_t, int64_t, const int64_t*, int64_t,
                                const int32_t*, int64_t, char*);
template int64_t gather_rows_over(const char*, int64_t, int64_t, const Kept&, const int32_t*,
                                  int64_t, char*, int64_t*, Stores);
template int64_t gather_rows_over(const char*, int64_t, int64_t, const Kept&, const int64_t*,
                                  int64_t, char*, int64_t*, Stores);

}  // namespace gnnbench
