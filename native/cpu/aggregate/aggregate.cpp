#include "cpu/aggregate/aggregate.h"

#include <algorithm>

#include "cpu/aggregate/prefetch.h"
#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kRowChunk = 128;
constexpr int64_t kEntryChunk = 16384;

enum class Weigh { kNot, kByColumn, kByEntry };

// Sums kPacks packs of one row from `column` on in registers. The last pack starts at `last`.
template <class L, int kPacks, Weigh kWeigh, class T>
GNNBENCH_INLINE void sum_packs(const RowSums<T>& s, int64_t row, int64_t column, int64_t last,
                               int64_t ahead_end) {
  using S = Sum<T>;
  using Pack = typename L::template Pack<S>;
  Pack acc[kPacks] = {};
  const auto at = [&](int v) __attribute__((always_inline)) {
    return v + 1 < kPacks ? column + v * L::template kPack<S> : last;
  };
  const auto add = [&](int64_t c, S w, bool weighted) __attribute__((always_inline)) {
    const T* from = s.x + c * s.dim;
#pragma GCC unroll 16
    for (int v = 0; v < kPacks; ++v) {
      Pack term;
      L::widen(from + at(v), term);
      acc[v] += weighted ? term * w : term;
    }
  };
  if (row < s.own_rows) add(row, s.own ? s.own[row] : S{1}, true);
  const int32_t* ids = s.block.indices;
  const int64_t end = s.block.indptr[row + 1];
  for (int64_t i = s.block.indptr[row]; i < end; ++i) {
    if (i + kAhead < ahead_end) prefetch_row(s.x + ids[i + kAhead] * s.dim, s.dim);
    const int64_t c = ids[i];
    if constexpr (kWeigh == Weigh::kNot) {
      add(c, S{1}, false);
    } else {
      add(c, kWeigh == Weigh::kByEntry ? s.entry_weights[i] : s.column_weights[c], true);
    }
  }
  const S factor = s.factors ? s.factors[row] : S{1};
  T* to = s.out + row * s.dim;
#pragma GCC unroll 16
  for (int v = 0; v < kPacks; ++v) {
    L::narrow(acc[v] * factor, to + at(v));
  }
}

// A row narrower than a pack.
template <class L, Weigh kWeigh, class T>
GNNBENCH_INLINE void sum_narrow(const RowSums<T>& s, int64_t row) {
  using S = Sum<T>;
  S acc[L::template kPack<S>] = {};
  const auto add = [&](int64_t c, S w) __attribute__((always_inline)) {
    for (int64_t k = 0; k < s.dim; ++k) acc[k] += w * widened(s.x[c * s.dim + k]);
  };
  if (row < s.own_rows) add(row, s.own ? s.own[row] : S{1});
  for (int64_t i = s.block.indptr[row]; i < s.block.indptr[row + 1]; ++i) {
    const int64_t c = s.block.indices[i];
    add(c, kWeigh == Weigh::kNot       ? S{1}
           : kWeigh == Weigh::kByEntry ? s.entry_weights[i]
                                       : s.column_weights[c]);
  }
  const S factor = s.factors ? s.factors[row] : S{1};
  for (int64_t k = 0; k < s.dim; ++k) narrow(acc[k] * factor, s.out[row * s.dim + k]);
}

// Rows [begin, end), at most kWide packs at a time. The last pack of a row ends with the row, so it
// can overlap the previous one.
template <class L, int kWide, Weigh kWeigh, class T>
GNNBENCH_INLINE void sum_chunk(const RowSums<T>& s, int64_t begin, int64_t end) {
  constexpr int64_t kStep = L::template kPack<Sum<T>>;
  if (s.dim < kStep) {
    for (int64_t row = begin; row < end; ++row) sum_narrow<L, kWeigh>(s, row);
    return;
  }
  const int64_t last_entry = s.block.indptr[end];
  const int64_t packs = (s.dim + kStep - 1) / kStep;
  for (int64_t row = begin; row < end; ++row) {
    int64_t ahead_end = last_entry;  // the first pass prefetches for all passes
    for (int64_t done = 0; done < packs;) {
      const int64_t left = packs - done, column = done * kStep;
      const auto last = [&](int64_t n) __attribute__((always_inline)) {
        return std::min(column + (n - 1) * kStep, s.dim - kStep);
      };
      if (kWide >= 16 && left >= 16) {
        sum_packs<L, kWide >= 16 ? 16 : 1, kWeigh>(s, row, column, last(16), ahead_end);
        done += 16;
      } else if (kWide >= 8 && left >= 8) {
        sum_packs<L, kWide >= 8 ? 8 : 1, kWeigh>(s, row, column, last(8), ahead_end);
        done += 8;
      } else if (left >= 4) {
        sum_packs<L, 4, kWeigh>(s, row, column, last(4), ahead_end);
        done += 4;
      } else if (left >= 2) {
        sum_packs<L, 2, kWeigh>(s, row, column, last(2), ahead_end);
        done += 2;
      } else {
        sum_packs<L, 1, kWeigh>(s, row, column, last(1), ahead_end);
        done += 1;
      }
      ahead_end = 0;
    }
  }
}

template <class L, int kWide, class T>
GNNBENCH_INLINE void sum_chunk(const RowSums<T>& s, int64_t begin, int64_t end) {
  if (s.entry_weights) {
    sum_chunk<L, kWide, Weigh::kByEntry>(s, begin, end);
  } else if (s.column_weights) {
    sum_chunk<L, kWide, Weigh::kByColumn>(s, begin, end);
  } else {
    sum_chunk<L, kWide, Weigh::kNot>(s, begin, end);
  }
}

#define GNNBENCH_CHUNK(T)                                                          \
  GNNBENCH_WIDE void wide_chunk(const RowSums<T>& s, int64_t begin, int64_t end) { \
    sum_chunk<Lanes<64>, 16>(s, begin, end);                                       \
  }                                                                                \
  GNNBENCH_NOT_WIDE void chunk(const RowSums<T>& s, int64_t begin, int64_t end) {  \
    sum_chunk<Lanes<32>, 8>(s, begin, end);                                        \
  }
GNNBENCH_CHUNK(float)
GNNBENCH_CHUNK(double)
GNNBENCH_CHUNK(Half)
GNNBENCH_CHUNK(BFloat16)
#undef GNNBENCH_CHUNK

}  // namespace

template <class S>
void row_factors(const int32_t* indptr, int64_t num_rows, const S* weights, Aggregate mode,
                 S* factors) {
  const S more = mode == Aggregate::kGcn ? S{1} : S{0};
  parallel_chunks(num_rows, kEntryChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = indptr[row], last = indptr[row + 1];
      S degree = static_cast<S>(last - first);
      if (weights) {
        degree = 0;
        for (int64_t i = first; i < last; ++i) degree += weights[i];
      }
      factors[row] = first == last ? S{1} : S{1} / (degree + more);
    }
  });
}

template <class S>
void transposed_weights(const int32_t* t_dst, const int32_t* t_edge, int64_t num_entries,
                        const S* weights, const S* factors, S* out) {
  parallel_chunks(num_entries, kEntryChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = weights[t_edge[i]] * (factors ? factors[t_dst[i]] : S{1});
    }
  });
}

template <class T>
void sum_rows(const RowSums<T>& sums) {
  const bool wide = has_avx512();
  parallel_chunks(sums.block.num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    wide ? wide_chunk(sums, begin, end) : chunk(sums, begin, end);
  });
}

template void row_factors(const int32_t*, int64_t, const float*, Aggregate, float*);
template void row_factors(const int32_t*, int64_t, const double*, Aggregate, double*);
template void transposed_weights(const int32_t*, const int32_t*, int64_t, const float*,
                                 const float*, float*);
template void transposed_weights(const int32_t*, const int32_t*, int64_t, const double*,
                                 const double*, double*);
template void sum_rows(const RowSums<float>&);
template void sum_rows(const RowSums<double>&);
template void sum_rows(const RowSums<Half>&);
template void sum_rows(const RowSums<BFloat16>&);

}  // namespace gnnbench
