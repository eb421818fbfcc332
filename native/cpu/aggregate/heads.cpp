// Weighted sums of heads, and products of rows.
#include <algorithm>
#include <cstring>

#include "cpu/aggregate/edges.h"
#include "cpu/aggregate/prefetch.h"
#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kRowChunk = 128;
constexpr int64_t kColumns = 256;  // kept in registers during a pass over a row's entries

template <class T>
struct Dots {
  BlockView block;
  int64_t heads, width;
  const T* rows;
  const T* x;
  Sum<T>* out;
};

// Sums the lanes pairwise.
template <class L, class S>
GNNBENCH_INLINE S total(const typename L::template Pack<S>& pack) {
  constexpr int64_t kPack = L::template kPack<S>;
  S part[kPack];
  std::memcpy(part, &pack, sizeof part);
  for (int64_t n = kPack / 2; n > 0; n /= 2) {
    for (int64_t k = 0; k < n; ++k) part[k] += part[k + n];
  }
  return part[0];
}

template <class L, class T>
GNNBENCH_INLINE void multiply(const T* a, const T* b, typename L::template Pack<Sum<T>>& product) {
  typename L::template Pack<Sum<T>> left, right;
  L::widen(a, left);
  L::widen(b, right);
  product = left * right;
}

template <class L, class T>
GNNBENCH_INLINE Sum<T> dot(const T* a, const T* b, int64_t width) {
  using S = Sum<T>;
  constexpr int64_t kPack = L::template kPack<S>;
  typename L::template Pack<S> sum = {}, product;
  int64_t k = 0;
  for (; k + kPack <= width; k += kPack) {
    multiply<L>(a + k, b + k, product);
    sum += product;
  }
  S rest = 0;
  for (; k < width; ++k) rest += widened(a[k]) * widened(b[k]);
  return total<L, S>(sum) + rest;
}

// Float sums of heads with eight columns: one or two heads fill a pack.
template <class L, class T>
GNNBENCH_INLINE bool eights(int64_t heads, int64_t width) {
  return sizeof(Sum<T>) == 4 && width == 8 && heads * 8 % L::template kPack<float> == 0;
}

GNNBENCH_INLINE void dots_of_eight(const Lanes<64>::Floats& product, float* out) {
  typedef int32_t Places __attribute__((vector_size(64)));
  constexpr Places kFour = {4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11};
  constexpr Places kTwo = {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13};
  constexpr Places kOne = {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14};
  Lanes<64>::Floats sum = product + __builtin_shuffle(product, kFour);
  sum += __builtin_shuffle(sum, kTwo);
  sum += __builtin_shuffle(sum, kOne);
  out[0] = sum[0];
  out[1] = sum[8];
}

GNNBENCH_INLINE void dots_of_eight(const Lanes<32>::Floats& product, float* out) {
  typedef int32_t Places __attribute__((vector_size(32)));
  constexpr Places kFour = {4, 5, 6, 7, 0, 1, 2, 3};
  constexpr Places kTwo = {2, 3, 0, 1, 6, 7, 4, 5};
  constexpr Places kOne = {1, 0, 3, 2, 5, 4, 7, 6};
  Lanes<32>::Floats sum = product + __builtin_shuffle(product, kFour);
  sum += __builtin_shuffle(sum, kTwo);
  sum += __builtin_shuffle(sum, kOne);
  out[0] = sum[0];
}

template <class L, class T>
GNNBENCH_INLINE void dot_rows(const Dots<T>& d, int64_t begin, int64_t end) {
  const int64_t row_size = d.heads * d.width, last_entry = d.block.indptr[end];
  const bool in_eights = eights<L, T>(d.heads, d.width);
  const int32_t* ids = d.block.indices;
  for (int64_t row = begin; row < end; ++row) {
    const T* a = d.rows + row * row_size;
    for (int64_t e = d.block.indptr[row]; e < d.block.indptr[row + 1]; ++e) {
      if (e + kAhead < last_entry) prefetch_row(d.x + ids[e + kAhead] * row_size, row_size);
      const T* b = d.x + ids[e] * row_size;
      Sum<T>* out = d.out + e * d.heads;
      if (in_eights) {
        if constexpr (sizeof(Sum<T>) == 4) {
          constexpr int64_t kStep = L::template kPack<float>;
          for (int64_t k = 0; k < row_size; k += kStep) {
            typename L::Floats product;
            multiply<L>(a + k, b + k, product);
            dots_of_eight(product, out + k / 8);
          }
        }
      } else {
        for (int64_t h = 0; h < d.heads; ++h) {
          out[h] = dot<L>(a + h * d.width, b + h * d.width, d.width);
        }
      }
    }
  }
}

GNNBENCH_INLINE void spread_pair(const float* w, Lanes<64>::Floats& to) {
  const float a = w[0], b = w[1];
  to = Lanes<64>::Floats{a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b};
}

// Sums kPacks packs of one row from `column` on in registers. A pack holds one head, or two heads
// of eight columns.
template <class L, int kPacks, bool kPairs, class T>
GNNBENCH_INLINE void sum_packs(const HeadSums<T>& s, int64_t row, int64_t column,
                               int64_t ahead_end) {
  using S = Sum<T>;
  using Pack = typename L::template Pack<S>;
  constexpr int64_t kPack = L::template kPack<S>;
  Pack acc[kPacks] = {};
  int64_t head[kPacks];
  for (int v = 0; v < kPacks; ++v) head[v] = (column + v * kPack) / s.width;
  const int64_t row_size = s.heads * s.width;
  const int32_t* ids = s.block.indices;
  for (int64_t i = s.block.indptr[row]; i < s.block.indptr[row + 1]; ++i) {
    if (i + kAhead < ahead_end) {
      prefetch_row(s.x + ids[i + kAhead] * row_size, row_size);
      if (s.edges) prefetch_row(s.weights + s.edges[i + kAhead] * s.heads, s.heads);
    }
    const S* w = s.weights + (s.edges ? s.edges[i] : i) * s.heads;
    const T* from = s.x + ids[i] * row_size + column;
#pragma GCC unroll 16
    for (int v = 0; v < kPacks; ++v) {
      Pack term;
      L::widen(from + v * kPack, term);
      if constexpr (kPairs) {
        Pack weights;
        spread_pair(w + head[v], weights);
        acc[v] += term * weights;
      } else {
        acc[v] += term * w[head[v]];
      }
    }
  }
  T* to = s.out + row * row_size + column;
#pragma GCC unroll 16
  for (int v = 0; v < kPacks; ++v) L::narrow(acc[v], to + v * kPack);
}

template <class L, int kWide, bool kPairs, class T>
GNNBENCH_INLINE void sum_row(const HeadSums<T>& s, int64_t row, int64_t ahead_end) {
  constexpr int64_t kPack = L::template kPack<Sum<T>>;
  const int64_t packs = s.heads * s.width / kPack;
  for (int64_t done = 0; done < packs;) {
    const int64_t left = packs - done, column = done * kPack;
    if (left >= kWide) {
      sum_packs<L, kWide, kPairs>(s, row, column, ahead_end);
      done += kWide;
    } else if (left >= 2) {
      sum_packs<L, 2, kPairs>(s, row, column, ahead_end);
      done += 2;
    } else {
      sum_packs<L, 1, kPairs>(s, row, column, ahead_end);
      done += 1;
    }
    ahead_end = 0;  // the first pass prefetches for all passes
  }
}

// Heads [head, head + heads) of a row, columns [column, column + width) of each.
template <class T>
GNNBENCH_INLINE void sum_columns(const HeadSums<T>& s, int64_t row, int64_t head, int64_t heads,
                                 int64_t column, int64_t width) {
  using S = Sum<T>;
  S acc[kColumns] = {};
  const int64_t row_size = s.heads * s.width;
  for (int64_t i = s.block.indptr[row]; i < s.block.indptr[row + 1]; ++i) {
    const S* w = s.weights + (s.edges ? s.edges[i] : i) * s.heads + head;
    const T* from = s.x + s.block.indices[i] * row_size + head * s.width + column;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t k = 0; k < width; ++k)
        acc[h * width + k] += w[h] * widened(from[h * s.width + k]);
    }
  }
  T* to = s.out + row * row_size + head * s.width + column;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t k = 0; k < width; ++k) narrow(acc[h * width + k], to[h * s.width + k]);
  }
}

template <class T>
GNNBENCH_INLINE void sum_any_row(const HeadSums<T>& s, int64_t row) {
  const int64_t wide = std::min(s.width, kColumns);
  const int64_t together = std::max<int64_t>(kColumns / s.width, 1);
  for (int64_t head = 0; head < s.heads; head += together) {
    const int64_t heads = std::min(together, s.heads - head);
    for (int64_t column = 0; column < s.width; column += wide) {
      sum_columns(s, row, head, heads, column, std::min(wide, s.width - column));
    }
  }
}

template <class L, int kWide, class T>
GNNBENCH_INLINE void sum_chunk(const HeadSums<T>& s, int64_t begin, int64_t end) {
  if (s.width == 0) return;
  const int64_t last_entry = s.block.indptr[end];
  if (s.width % L::template kPack<Sum<T>> == 0) {
    for (int64_t row = begin; row < end; ++row) sum_row<L, kWide, false>(s, row, last_entry);
    return;
  }
  if constexpr (L::template kPack<Sum<T>> == 16) {
    if (eights<L, T>(s.heads, s.width)) {
      for (int64_t row = begin; row < end; ++row) sum_row<L, kWide, true>(s, row, last_entry);
      return;
    }
  }
  for (int64_t row = begin; row < end; ++row) sum_any_row(s, row);
}

#define GNNBENCH_HEADS(T)                                                           \
  GNNBENCH_WIDE void wide_chunk(const Dots<T>& d, int64_t begin, int64_t end) {     \
    dot_rows<Lanes<64>>(d, begin, end);                                             \
  }                                                                                 \
  GNNBENCH_NOT_WIDE void chunk(const Dots<T>& d, int64_t begin, int64_t end) {      \
    dot_rows<Lanes<32>>(d, begin, end);                                             \
  }                                                                                 \
  GNNBENCH_WIDE void wide_chunk(const HeadSums<T>& s, int64_t begin, int64_t end) { \
    sum_chunk<Lanes<64>, 8>(s, begin, end);                                         \
  }                                                                                 \
  GNNBENCH_NOT_WIDE void chunk(const HeadSums<T>& s, int64_t begin, int64_t end) {  \
    sum_chunk<Lanes<32>, 8>(s, begin, end);                                         \
  }
GNNBENCH_HEADS(float)
GNNBENCH_HEADS(double)
GNNBENCH_HEADS(Half)
GNNBENCH_HEADS(BFloat16)
#undef GNNBENCH_HEADS

}  // namespace

template <class T>
void edge_dots(const BlockView& block, int64_t heads, int64_t width, const T* rows, const T* x,
               Sum<T>* out) {
  const Dots<T> dots{block, heads, width, rows, x, out};
  const bool wide = has_avx512();
  parallel_chunks(block.num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    wide ? wide_chunk(dots, begin, end) : chunk(dots, begin, end);
  });
}

template <class T>
void sum_heads(const HeadSums<T>& sums) {
  const bool wide = has_avx512();
  parallel_chunks(sums.block.num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    wide ? wide_chunk(sums, begin, end) : chunk(sums, begin, end);
  });
}

#define GNNBENCH_INSTANTIATE(T)                                                             \
  template void edge_dots(const BlockView&, int64_t, int64_t, const T*, const T*, Sum<T>*); \
  template void sum_heads(const HeadSums<T>&);
GNNBENCH_INSTANTIATE(float)
GNNBENCH_INSTANTIATE(double)
GNNBENCH_INSTANTIATE(Half)
GNNBENCH_INSTANTIATE(BFloat16)
#undef GNNBENCH_INSTANTIATE

}  // namespace gnnbench
