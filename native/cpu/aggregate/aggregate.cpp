#include "cpu/aggregate/aggregate.h"

#include <algorithm>
#include <cstring>

#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kRowChunk = 128;
constexpr int64_t kAhead = 6;  // edges between a prefetch and its use
constexpr int64_t kLine = 64;

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  static constexpr int64_t kWidth = 32 / sizeof(T);
};

// out[r] = after[r] * (own row of r, if r < self_rows, + sum over the row's entries c of x[c]),
// each row of x times weight[c] where weights are given.
template <class T>
struct Sum {
  BlockView block;
  const T* x;
  int64_t dim;
  const T* weight;    // or null
  int64_t self_rows;  // these add their own row first
  Aggregate after;    // kSum: 1, kMean: 1 / d, kGcn: 1 / (d + 1)
  T* out;

  T factor(int64_t row) const {
    const int64_t d = block.indptr[row + 1] - block.indptr[row];
    if (after == Aggregate::kGcn) return T{1} / static_cast<T>(d + 1);
    return after == Aggregate::kMean && d > 0 ? T{1} / static_cast<T>(d) : T{1};
  }
};

// Columns [column, column + kVecs * width) of one row, held in registers.
template <int kVecs, bool kWeighted, bool kPrefetch, class T>
inline __attribute__((always_inline)) void sum_columns(const Sum<T>& s, int64_t row, int64_t column,
                                                       int64_t last_edge) {
  using Vec = typename VecOf<T>::type;
  constexpr int64_t kWidth = VecOf<T>::kWidth;
  Vec acc[kVecs] = {};
  const auto add = [&](int64_t c) __attribute__((always_inline)) {
    const Vec* from = reinterpret_cast<const Vec*>(s.x + c * s.dim + column);
    if constexpr (kWeighted) {
      const T w = s.weight[c];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) acc[v] += from[v] * w;
    } else {
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) acc[v] += from[v];
    }
  };
  if (row < s.self_rows) add(row);
  for (int64_t e = s.block.indptr[row]; e < s.block.indptr[row + 1]; ++e) {
    if (kPrefetch && e + kAhead < last_edge) {
      const char* next = reinterpret_cast<const char*>(
          s.x + static_cast<int64_t>(s.block.indices[e + kAhead]) * s.dim);
      for (int64_t b = 0; b < s.dim * static_cast<int64_t>(sizeof(T)); b += kLine) {
        __builtin_prefetch(next + b);
      }
    }
    add(s.block.indices[e]);
  }
  const T factor = s.factor(row);
  Vec* to = reinterpret_cast<Vec*>(s.out + row * s.dim + column);
#pragma GCC unroll 8
  for (int v = 0; v < kVecs; ++v) to[v] = acc[v] * factor;
  static_assert(kWidth * sizeof(T) == sizeof(Vec));
}

template <bool kWeighted, class T>
inline __attribute__((always_inline)) void sum_tail(const Sum<T>& s, int64_t row, int64_t column) {
  const int64_t width = s.dim - column;
  T acc[VecOf<T>::kWidth] = {};
  const auto add = [&](int64_t c) __attribute__((always_inline)) {
    const T w = kWeighted ? s.weight[c] : T{1};
    for (int64_t k = 0; k < width; ++k) acc[k] += w * s.x[c * s.dim + column + k];
  };
  if (row < s.self_rows) add(row);
  for (int64_t e = s.block.indptr[row]; e < s.block.indptr[row + 1]; ++e) add(s.block.indices[e]);
  const T factor = s.factor(row);
  for (int64_t k = 0; k < width; ++k) s.out[row * s.dim + column + k] = factor * acc[k];
}

template <bool kWeighted, class T>
inline __attribute__((always_inline)) void sum_rows(const Sum<T>& s, int64_t begin, int64_t end) {
  constexpr int64_t kWidth = VecOf<T>::kWidth;
  const int64_t last_edge = s.block.indptr[end];
  for (int64_t row = begin; row < end; ++row) {
    int64_t column = 0;
    if (s.dim >= 8 * kWidth) {
      sum_columns<8, kWeighted, true>(s, row, 0, last_edge);
      column = 8 * kWidth;
    }
    for (; column + 8 * kWidth <= s.dim; column += 8 * kWidth) {
      sum_columns<8, kWeighted, false>(s, row, column, last_edge);
    }
    for (; column + 4 * kWidth <= s.dim; column += 4 * kWidth) {
      sum_columns<4, kWeighted, false>(s, row, column, last_edge);
    }
    for (; column + kWidth <= s.dim; column += kWidth) {
      sum_columns<1, kWeighted, false>(s, row, column, last_edge);
    }
    if (column < s.dim) sum_tail<kWeighted>(s, row, column);
  }
}

// Multiversioning wants plain functions.
GNNBENCH_CLONES void chunk(const Sum<float>& s, int64_t begin, int64_t end) {
  if (s.weight) {
    sum_rows<true>(s, begin, end);
  } else {
    sum_rows<false>(s, begin, end);
  }
}

GNNBENCH_CLONES void chunk(const Sum<double>& s, int64_t begin, int64_t end) {
  if (s.weight) {
    sum_rows<true>(s, begin, end);
  } else {
    sum_rows<false>(s, begin, end);
  }
}

template <class T>
void run(const Sum<T>& s) {
  parallel_chunks(s.block.num_rows, kRowChunk,
                  [&](int64_t, int64_t begin, int64_t end) { chunk(s, begin, end); });
}

}  // namespace

template <class T>
void aggregate(const BlockView& block, const T* x, int64_t dim, Aggregate mode, T* out) {
  run(Sum<T>{block, x, dim, nullptr, mode == Aggregate::kGcn ? block.num_rows : 0, mode, out});
}

template <class T>
void aggregate_backward(const BlockView& block, const BlockView& transposed, const T* grad,
                        int64_t dim, Aggregate mode, T* scale, T* grad_x) {
  const Sum<T> forward{block, nullptr, 0, nullptr, 0, mode, nullptr};
  for (int64_t v = 0; v < block.num_rows; ++v) scale[v] = forward.factor(v);
  run(Sum<T>{transposed, grad, dim, mode == Aggregate::kSum ? nullptr : scale,
             mode == Aggregate::kGcn ? block.num_rows : 0, Aggregate::kSum, grad_x});
}

template void aggregate(const BlockView&, const float*, int64_t, Aggregate, float*);
template void aggregate(const BlockView&, const double*, int64_t, Aggregate, double*);
template void aggregate_backward(const BlockView&, const BlockView&, const float*, int64_t,
                                 Aggregate, float*, float*);
template void aggregate_backward(const BlockView&, const BlockView&, const double*, int64_t,
                                 Aggregate, double*, double*);

}  // namespace gnnbench
