#include "cpu/features/gather.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kChunkBytes = 1 << 18;
constexpr int64_t kAheadBytes = 1 << 15;  // rows are asked for this far ahead of their copy

// The rows of ids[begin, end), in their order.
template <class Id>
struct Rows {
  const char* table;
  int64_t rows, bytes;
  const Id* ids;
  int64_t begin, end;

  // Calls append(row) for one after the other; the first position of a wrong id, or -1. Little is
  // live in the loop, so that all of it stays in registers: a load from memory waits for the stores
  // before it that have the low bits of its address.
  template <class Append>
  [[gnu::always_inline]] int64_t each(Append append) const {
    const char* const from = table;
    const int64_t width = bytes;
    const auto count = static_cast<uint64_t>(rows);
    const Id* const last = ids + end;
    const Id* id = ids + begin;
    const Id* next = id;
    // Into the second cache: the first has too few requests to hide the memory behind. Inlined by
    // force: GCC takes a function that only prefetches for one that does nothing.
    const auto ask = [&]() __attribute__((always_inline)) {
      const auto asked = static_cast<uint64_t>(*next++);
      if (asked >= count) return;
      const char* line = from + static_cast<int64_t>(asked) * width;
      const char* const stop = line + width;
      line -= reinterpret_cast<uintptr_t>(line) % kLine;
      for (; line < stop; line += kLine) __builtin_prefetch(line, 0, 2);
    };
    const int64_t ahead = std::clamp<int64_t>(kAheadBytes / std::max<int64_t>(width, 1), 1, 64);
    while (next < last && next < id + ahead) ask();
    for (; id < last; ++id) {
      if (next < last) ask();
      const auto now = static_cast<uint64_t>(*id);
      if (now >= count) return id - ids;
      append(from + static_cast<int64_t>(now) * width);
    }
    return -1;
  }
};

template <class Id>
int64_t cached(const Rows<Id>& rows, char* to) {
  const int64_t bytes = rows.bytes;
  return rows.each([=](const char* row) mutable {
    if (bytes > 0) std::memcpy(to, row, static_cast<size_t>(bytes));  // an empty table may be null
    to += bytes;
  });
}

#ifdef GNNBENCH_X86
// Rows of whole lines, to where a line begins.
template <class Line, class Id>
[[gnu::always_inline]] inline int64_t lines(const Rows<Id>& rows, char* to) {
  const int64_t bytes = rows.bytes;
  return rows.each([=](const char* row) mutable __attribute__((always_inline)) {
    for (int64_t b = 0; b < bytes; b += kLine) Line()(to + b, row + b);
    to += bytes;
  });
}

template <class Id>
GNNBENCH_AVX512 int64_t lines_avx512(const Rows<Id>& rows, char* to) {
  return lines<LineAvx512>(rows, to);
}

template <class Id>
GNNBENCH_AVX2 int64_t lines_avx2(const Rows<Id>& rows, char* to) {
  return lines<LineAvx2>(rows, to);
}

template <class Id>
int64_t streamed(const Rows<Id>& rows, char* to, Stores stores) {
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
template <class Id>
int64_t streamed(const Rows<Id>& rows, char* to, Stores) {
  return cached(rows, to);
}
#endif

}  // namespace

template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out, Stores stores) {
  std::atomic<int64_t> bad{INT64_MAX};
  const int64_t chunk = std::max<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1), 16);
  parallel_chunks(n, chunk, [&](int64_t, int64_t begin, int64_t end) {
    const Rows<Id> from{table, rows, row_bytes, ids, begin, end};
    char* const to = out + begin * row_bytes;
    const int64_t wrong = stores == Stores::kCached ? cached(from, to) : streamed(from, to, stores);
    int64_t seen = bad.load(std::memory_order_relaxed);
    while (wrong >= 0 && wrong < seen && !bad.compare_exchange_weak(seen, wrong)) {
    }
  });
  return bad.load() == INT64_MAX ? -1 : bad.load();
}

template int64_t gather_rows(const char*, int64_t, int64_t, const int32_t*, int64_t, char*, Stores);
template int64_t gather_rows(const char*, int64_t, int64_t, const int64_t*, int64_t, char*, Stores);

}  // namespace gnnbench
