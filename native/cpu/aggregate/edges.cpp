#include "cpu/aggregate/edges.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kRowChunk = 256;
constexpr int64_t kHeads = 16;  // processed together

using Eight = Lanes<32>;

// Replaces values up to 0 by their exponentials, within two units in the last place. Results below
// the smallest normal number become 0.
GNNBENCH_INLINE void power_of(Eight::Floats& x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2, where the error of Taylor's polynomial is 5e-9.
  constexpr float kPerLn2 = 1.44269504f, kRound = 0x1.8p23f;  // adding kRound rounds to an integer
  constexpr float kLn2High = 355.0f / 512,
                  kLn2Low = -2.12194440e-4f;  // n * kLn2High is exact
  const Eight::Floats least = Eight::Floats{} - 88.0f;
  const Eight::Floats value = x < least ? least : x;  // NaN stays NaN
  const Eight::Floats shifted = value * kPerLn2 + kRound;
  const Eight::Floats n = shifted - kRound;
  const Eight::Floats r = value - n * kLn2High - n * kLn2Low;
  Eight::Floats sum = r * (1.0f / 5040) + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  // The low bits of `shifted` are n. As an exponent they give 2^n, and 0 for n = -127.
  const Eight::Bits32 scale = (reinterpret_cast<const Eight::Bits32&>(shifted) - 0x4b400000u + 127)
                              << 23;
  x = sum * reinterpret_cast<const Eight::Floats&>(scale);
}

GNNBENCH_INLINE void powers(float* values, int64_t n) {
  int64_t i = 0;
  for (; i + Eight::kPack<float> <= n; i += Eight::kPack<float>) {
    power_of(*reinterpret_cast<Eight::Floats*>(values + i));
  }
  Eight::Floats rest = {};
  const size_t bytes = static_cast<size_t>(n - i) * sizeof(float);
  std::memcpy(&rest, values + i, bytes);
  power_of(rest);
  std::memcpy(values + i, &rest, bytes);
}

GNNBENCH_INLINE void powers(double* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = std::exp(values[i]);
}

// Subtracts each row's maximum, exponentiates all rows at once, then normalises.
template <class S>
GNNBENCH_INLINE void softmax_rows(const int32_t* indptr, int64_t begin, int64_t end, int64_t heads,
                                  const S* scores, S* out) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = indptr[row], last = indptr[row + 1];
    for (int64_t low = 0; first < last && low < heads; low += kHeads) {
      const int64_t n = std::min(kHeads, heads - low);
      S most[kHeads];
      for (int64_t h = 0; h < n; ++h) most[h] = scores[first * heads + low + h];
      for (int64_t e = first + 1; e < last; ++e) {
        for (int64_t h = 0; h < n; ++h) most[h] = std::max(most[h], scores[e * heads + low + h]);
      }
      for (int64_t e = first; e < last; ++e) {
        for (int64_t h = 0; h < n; ++h) {
          out[e * heads + low + h] = scores[e * heads + low + h] - most[h];
        }
      }
    }
  }
  powers(out + indptr[begin] * heads, (indptr[end] - indptr[begin]) * heads);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = indptr[row], last = indptr[row + 1];
    for (int64_t low = 0; low < heads; low += kHeads) {
      const int64_t n = std::min(kHeads, heads - low);
      S sum[kHeads] = {};
      for (int64_t e = first; e < last; ++e) {
        for (int64_t h = 0; h < n; ++h) sum[h] += out[e * heads + low + h];
      }
      for (int64_t e = first; e < last; ++e) {
        for (int64_t h = 0; h < n; ++h) out[e * heads + low + h] /= sum[h];
      }
    }
  }
}

template <class S>
GNNBENCH_INLINE void softmax_backward_rows(const int32_t* indptr, int64_t begin, int64_t end,
                                           int64_t heads, const S* softmax, const S* grad, S* out) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = indptr[row], last = indptr[row + 1];
    for (int64_t low = 0; low < heads; low += kHeads) {
      const int64_t n = std::min(kHeads, heads - low);
      S sum[kHeads] = {};
      for (int64_t e = first; e < last; ++e) {
        for (int64_t h = 0; h < n; ++h) {
          sum[h] += softmax[e * heads + low + h] * grad[e * heads + low + h];
        }
      }
      for (int64_t e = first; e < last; ++e) {
        for (int64_t h = 0; h < n; ++h) {
          const int64_t at = e * heads + low + h;
          out[at] = softmax[at] * (grad[at] - sum[h]);
        }
      }
    }
  }
}

template <class S>
GNNBENCH_INLINE void add_rows(const BlockView& b, int64_t begin, int64_t end, int64_t heads,
                              const S* src, const S* dst, S* out) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t e = b.indptr[row]; e < b.indptr[row + 1]; ++e) {
      const S* from = src + b.indices[e] * heads;
      for (int64_t h = 0; h < heads; ++h) out[e * heads + h] = from[h] + dst[row * heads + h];
    }
  }
}

template <class S>
GNNBENCH_INLINE void sums_of_rows(const int32_t* indptr, int64_t begin, int64_t end, int64_t heads,
                                  const S* values, const int32_t* edges, S* out) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t low = 0; low < heads; low += kHeads) {
      const int64_t n = std::min(kHeads, heads - low);
      S sum[kHeads] = {};
      for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
        const S* from = values + (edges ? edges[i] : i) * heads + low;
        for (int64_t h = 0; h < n; ++h) sum[h] += from[h];
      }
      for (int64_t h = 0; h < n; ++h) out[row * heads + low + h] = sum[h];
    }
  }
}

#define GNNBENCH_EDGES(S)                                                                         \
  GNNBENCH_CLONES void softmax_chunk(const int32_t* indptr, int64_t begin, int64_t end,           \
                                     int64_t heads, const S* scores, S* out) {                    \
    softmax_rows(indptr, begin, end, heads, scores, out);                                         \
  }                                                                                               \
  GNNBENCH_CLONES void softmax_backward_chunk(const int32_t* indptr, int64_t begin, int64_t end,  \
                                              int64_t heads, const S* softmax, const S* grad,     \
                                              S* out) {                                           \
    softmax_backward_rows(indptr, begin, end, heads, softmax, grad, out);                         \
  }                                                                                               \
  GNNBENCH_CLONES void add_chunk(const BlockView& b, int64_t begin, int64_t end, int64_t heads,   \
                                 const S* src, const S* dst, S* out) {                            \
    add_rows(b, begin, end, heads, src, dst, out);                                                \
  }                                                                                               \
  GNNBENCH_CLONES void sums_chunk(const int32_t* indptr, int64_t begin, int64_t end,              \
                                  int64_t heads, const S* values, const int32_t* edges, S* out) { \
    sums_of_rows(indptr, begin, end, heads, values, edges, out);                                  \
  }
GNNBENCH_EDGES(float)
GNNBENCH_EDGES(double)
#undef GNNBENCH_EDGES

}  // namespace

template <class S>
void edge_add(const BlockView& block, int64_t heads, const S* src, const S* dst, S* out) {
  parallel_chunks(block.num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    add_chunk(block, begin, end, heads, src, dst, out);
  });
}

template <class S>
void edge_sums(const int32_t* indptr, int64_t num_rows, int64_t heads, const S* values,
               const int32_t* edges, S* out) {
  parallel_chunks(num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    sums_chunk(indptr, begin, end, heads, values, edges, out);
  });
}

template <class S>
void edge_softmax(const int32_t* indptr, int64_t num_rows, int64_t heads, const S* scores, S* out) {
  parallel_chunks(num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    softmax_chunk(indptr, begin, end, heads, scores, out);
  });
}

template <class S>
void edge_softmax_backward(const int32_t* indptr, int64_t num_rows, int64_t heads, const S* softmax,
                           const S* grad, S* out) {
  parallel_chunks(num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    softmax_backward_chunk(indptr, begin, end, heads, softmax, grad, out);
  });
}

#define GNNBENCH_INSTANTIATE(S)                                                            \
  template void edge_add(const BlockView&, int64_t, const S*, const S*, S*);               \
  template void edge_sums(const int32_t*, int64_t, int64_t, const S*, const int32_t*, S*); \
  template void edge_softmax(const int32_t*, int64_t, int64_t, const S*, S*);              \
  template void edge_softmax_backward(const int32_t*, int64_t, int64_t, const S*, const S*, S*);
GNNBENCH_INSTANTIATE(float)
GNNBENCH_INSTANTIATE(double)
#undef GNNBENCH_INSTANTIATE

}  // namespace gnnbench
