#include "cpu/features/gather.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kChunkBytes = 1 << 17;
constexpr int64_t kAheadBytes = 4096;   // rows are asked for this far ahead of their copy
constexpr int64_t kMaxPrefetch = 2048;  // of a row; the hardware follows longer ones

}  // namespace

template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out) {
  std::atomic<int64_t> bad{INT64_MAX};
  const int64_t width = std::max<int64_t>(row_bytes, 1);
  const int64_t chunk = std::max<int64_t>(kChunkBytes / width, 16);
  const int64_t ahead = std::clamp<int64_t>(kAheadBytes / width, 1, 64);
  const int64_t prefetched = std::min(row_bytes, kMaxPrefetch);
  parallel_chunks(n, chunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + ahead < end) {
        const uint64_t next = static_cast<uint64_t>(ids[i + ahead]);
        if (next < static_cast<uint64_t>(rows)) {
          const char* row = table + static_cast<int64_t>(next) * row_bytes;
          for (int64_t b = 0; b < prefetched; b += kLine) __builtin_prefetch(row + b);
        }
      }
      const uint64_t id = static_cast<uint64_t>(ids[i]);
      if (id >= static_cast<uint64_t>(rows)) {
        int64_t seen = bad.load(std::memory_order_relaxed);
        while (i < seen && !bad.compare_exchange_weak(seen, i)) {
        }
        continue;
      }
      if (row_bytes == 0) continue;  // an empty table may have no address
      std::memcpy(out + i * row_bytes, table + static_cast<int64_t>(id) * row_bytes,
                  static_cast<size_t>(row_bytes));
    }
  });
  return bad.load() == INT64_MAX ? -1 : bad.load();
}

template int64_t gather_rows(const char*, int64_t, int64_t, const int32_t*, int64_t, char*);
template int64_t gather_rows(const char*, int64_t, int64_t, const int64_t*, int64_t, char*);

}  // namespace gnnbench
