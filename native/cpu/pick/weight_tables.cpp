#include "cpu/pick/weight_tables.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu/common/parallel.h"
#include "gnnbench/pick.h"

namespace gnnbench {
namespace {

constexpr int64_t kRowChunk = 256;
constexpr int64_t kEdgeChunk = 1 << 16;

// Returns the smallest i in [0, n) with bad(i), or -1.
template <class Bad>
int64_t first_of(int64_t n, int64_t chunk_size, const Bad& bad) {
  std::atomic<int64_t> first{n};
  parallel_chunks(n, chunk_size, [&](int64_t, int64_t begin, int64_t end) {
    int64_t i = begin;
    while (i < end && !bad(i)) ++i;
    if (i == end) return;
    int64_t seen = first.load(std::memory_order_relaxed);
    while (i < seen && !first.compare_exchange_weak(seen, i)) {
    }
  });
  return first.load() == n ? -1 : first.load();
}

// Calls row(begin, degree) for every non-empty row.
template <class F>
void for_rows(const int64_t* indptr, int64_t num_nodes, const F& row) {
  parallel_chunks(num_nodes, kRowChunk, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t v = first; v < last; ++v) {
      const int64_t begin = indptr[v], degree = indptr[v + 1] - begin;
      if (degree > 0) row(begin, degree);
    }
  });
}

// Builds one row's alias table. An entry's share is q * degree; every bucket holds `total`, the
// mean.
void alias_row(const uint32_t* q, int64_t degree, uint32_t* threshold, uint32_t* alias) {
  uint64_t total = 0;  // q <= 2^31 and degree < 2^32: no share and no sum overflows
  for (int64_t i = 0; i < degree; ++i) total += q[i];
  if (total == 0) {
    std::fill_n(threshold, degree, 0u);
    std::fill_n(alias, degree, kNoWeight);
    return;
  }
  const auto share = [&](int64_t i) { return q[i] * static_cast<uint64_t>(degree); };
  const auto next = [&](int64_t i, bool light) {
    while (i < degree && (share(i) < total) != light) ++i;
    return i;
  };
  // Entry i keeps `part` of its bucket, entry `other` fills the rest.
  const auto fill = [&](int64_t i, uint64_t part, int64_t other) {
    threshold[i] = static_cast<uint32_t>((static_cast<unsigned __int128>(part) << 32) / total);
    alias[i] = static_cast<uint32_t>(other);
  };
  int64_t light = next(0, true), heavy = next(0, false);
  uint64_t left = share(heavy);  // remaining share of the heavy entry
  while (heavy < degree) {
    if (left >= total && light < degree) {
      fill(light, share(light), heavy);
      left -= total - share(light);
      light = next(light + 1, true);
      continue;
    }
    const int64_t after = next(heavy + 1, false);
    if (left == total) {
      threshold[heavy] = UINT32_MAX;
      alias[heavy] = static_cast<uint32_t>(heavy);
      if (after < degree) left = share(after);
    } else {  // the heavy entry has become light
      fill(heavy, left, after);
      left = share(after) - (total - left);
    }
    heavy = after;
  }
}

}  // namespace

template <class Real>
int64_t first_bad_weight(const Real* weights, int64_t num_edges) {
  return first_of(num_edges, kEdgeChunk,
                  [=](int64_t i) { return !(weights[i] >= 0) || !std::isfinite(weights[i]); });
}

int64_t first_bad_row(const int64_t* indptr, int64_t num_nodes, int64_t num_edges) {
  return first_of(num_nodes, kEdgeChunk, [=](int64_t v) {
    const int64_t begin = indptr[v], end = indptr[v + 1];
    return begin < 0 || end < begin || end > num_edges || end - begin > UINT32_MAX;
  });
}

template <class Real>
void quantize_weights(const int64_t* indptr, int64_t num_nodes, const Real* weights, uint32_t* q) {
  for_rows(indptr, num_nodes, [=](int64_t begin, int64_t degree) {
    const Real* w = weights + begin;
    const double largest = *std::max_element(w, w + degree);
    for (int64_t i = 0; i < degree; ++i) {
      const int64_t rounded = w[i] == 0 ? 0 : std::llrint(w[i] / largest * 0x1p31);
      q[begin + i] = w[i] == 0 ? 0u : static_cast<uint32_t>(std::max<int64_t>(rounded, 1));
    }
  });
}

void prefix_table(const int64_t* indptr, int64_t num_nodes, const uint32_t* q, int64_t* prefix) {
  for_rows(indptr, num_nodes, [=](int64_t begin, int64_t degree) {
    int64_t sum = 0;
    for (int64_t i = begin; i < begin + degree; ++i) prefix[i] = sum += q[i];
  });
}

void alias_table(const int64_t* indptr, int64_t num_nodes, const uint32_t* q, uint32_t* threshold,
                 uint32_t* alias) {
  for_rows(indptr, num_nodes, [=](int64_t begin, int64_t degree) {
    alias_row(q + begin, degree, threshold + begin, alias + begin);
  });
}

template int64_t first_bad_weight(const float*, int64_t);
template int64_t first_bad_weight(const double*, int64_t);
template void quantize_weights(const int64_t*, int64_t, const float*, uint32_t*);
template void quantize_weights(const int64_t*, int64_t, const double*, uint32_t*);

}  // namespace gnnbench
