// Checks of a block, and its transpose by a stable counting sort.
#include <algorithm>
#include <atomic>

#include "cpu/aggregate/block.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kChunk = 8192;
constexpr int64_t kMaxParts = 8;  // limits the scratch memory on machines with many cores

// Smallest i in [0, n) for which wrong(i), or -1.
template <class Wrong>
int64_t first_wrong(int64_t n, const Wrong& wrong) {
  std::atomic<int64_t> bad{INT64_MAX};
  parallel_chunks(n, kChunk, [&](int64_t, int64_t begin, int64_t end) {
    bool any = false;
    for (int64_t i = begin; i < end; ++i) any |= wrong(i);
    if (!any) return;
    int64_t at = begin;
    while (!wrong(at)) ++at;
    int64_t seen = bad.load();
    while (at < seen && !bad.compare_exchange_weak(seen, at)) {
    }
  });
  return bad.load() == INT64_MAX ? -1 : bad.load();
}

// First row of part p when the edges are cut into equal parts at row boundaries.
int64_t part_begin(const BlockView& b, int64_t p, int64_t parts) {
  if (p == parts) return b.num_rows;
  const int32_t edge = static_cast<int32_t>(b.num_edges * p / parts);
  return std::lower_bound(b.indptr, b.indptr + b.num_rows, edge) - b.indptr;
}

}  // namespace

int64_t find_bad_row(const int32_t* indptr, int64_t num_rows, int64_t num_edges) {
  if (indptr[0] != 0) return 0;
  const int64_t row = first_wrong(num_rows, [&](int64_t i) { return indptr[i + 1] < indptr[i]; });
  if (row >= 0) return row;
  return indptr[num_rows] == num_edges ? -1 : std::max<int64_t>(num_rows - 1, 0);
}

int64_t find_bad_id(const int32_t* ids, int64_t n, int64_t bound) {
  const uint64_t limit = static_cast<uint64_t>(bound);
  return first_wrong(n, [&](int64_t i) { return static_cast<uint32_t>(ids[i]) >= limit; });
}

int64_t transpose_parts() { return std::min(num_threads(), kMaxParts); }

void transpose(const BlockView& b, int64_t num_src, int64_t parts, int32_t* counts, int32_t* indptr,
               int32_t* dst, int32_t* edge) {
  // Count how often each part contains each source.
  parallel_chunks(parts, 1, [&](int64_t p, int64_t, int64_t) {
    int32_t* count = counts + p * num_src;
    std::fill(count, count + num_src, 0);
    const int64_t begin = b.indptr[part_begin(b, p, parts)];
    const int64_t end = b.indptr[part_begin(b, p + 1, parts)];
    for (int64_t e = begin; e < end; ++e) ++count[b.indices[e]];
  });
  // Turn the counts into the first position of each (source, part),
  int32_t total = 0;
  for (int64_t s = 0; s < num_src; ++s) {
    indptr[s] = total;
    for (int64_t p = 0; p < parts; ++p) {
      int32_t& count = counts[p * num_src + s];
      const int32_t here = count;
      count = total;
      total += here;
    }
  }
  indptr[num_src] = total;
  // Write each part's edges to its positions.
  parallel_chunks(parts, 1, [&](int64_t p, int64_t, int64_t) {
    int32_t* place = counts + p * num_src;
    const int64_t end = part_begin(b, p + 1, parts);
    for (int64_t v = part_begin(b, p, parts); v < end; ++v) {
      for (int64_t e = b.indptr[v]; e < b.indptr[v + 1]; ++e) {
        const int32_t to = place[b.indices[e]]++;
        dst[to] = static_cast<int32_t>(v);
        edge[to] = static_cast<int32_t>(e);
      }
    }
  });
}

}  // namespace gnnbench
