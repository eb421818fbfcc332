// Weighted sums of heads, and products of rows.
#include <algorithm>

#include "cpu/aggregate/edges.h"
#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kRowChunk = 128;
constexpr int64_t kLanes = 16;     // partial sums of a product, added in a fixed order
constexpr int64_t kColumns = 256;  // held while a row's entries are gone through

template <class T>
struct Dots {
  BlockView block;
  int64_t heads, width;
  const T* rows;
  const T* x;
  Sum<T>* out;
};

template <class T>
GNNBENCH_INLINE Sum<T> dot(const T* a, const T* b, int64_t width) {
  using S = Sum<T>;
  S part[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= width; k += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) part[j] += widened(a[k + j]) * widened(b[k + j]);
  }
  for (int64_t j = 0; k + j < width; ++j) part[j] += widened(a[k + j]) * widened(b[k + j]);
  for (int64_t n = kLanes / 2; n > 0; n /= 2) {
    for (int64_t j = 0; j < n; ++j) part[j] += part[j + n];
  }
  return part[0];
}

template <class T>
GNNBENCH_INLINE void dot_rows(const Dots<T>& d, int64_t begin, int64_t end) {
  const int64_t row_size = d.heads * d.width;
  for (int64_t row = begin; row < end; ++row) {
    const T* a = d.rows + row * row_size;
    for (int64_t e = d.block.indptr[row]; e < d.block.indptr[row + 1]; ++e) {
      const T* b = d.x + d.block.indices[e] * row_size;
      for (int64_t h = 0; h < d.heads; ++h) {
        d.out[e * d.heads + h] = dot(a + h * d.width, b + h * d.width, d.width);
      }
    }
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
GNNBENCH_INLINE void sum_chunk(const HeadSums<T>& s, int64_t begin, int64_t end) {
  if (s.width == 0) return;
  const int64_t wide = std::min(s.width, kColumns);
  const int64_t together = std::max<int64_t>(kColumns / s.width, 1);
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t head = 0; head < s.heads; head += together) {
      const int64_t heads = std::min(together, s.heads - head);
      for (int64_t column = 0; column < s.width; column += wide) {
        sum_columns(s, row, head, heads, column, std::min(wide, s.width - column));
      }
    }
  }
}

#define GNNBENCH_HEADS(T)                                                             \
  GNNBENCH_CLONES void dots_chunk(const Dots<T>& d, int64_t begin, int64_t end) {     \
    dot_rows(d, begin, end);                                                          \
  }                                                                                   \
  GNNBENCH_CLONES void sums_chunk(const HeadSums<T>& s, int64_t begin, int64_t end) { \
    sum_chunk(s, begin, end);                                                         \
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
  parallel_chunks(block.num_rows, kRowChunk,
                  [&](int64_t, int64_t begin, int64_t end) { dots_chunk(dots, begin, end); });
}

template <class T>
void sum_heads(const HeadSums<T>& sums) {
  parallel_chunks(sums.block.num_rows, kRowChunk,
                  [&](int64_t, int64_t begin, int64_t end) { sums_chunk(sums, begin, end); });
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
