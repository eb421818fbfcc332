#include "cpu/ceilings/ceilings.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"
#include "cpu/features/stream.h"

#ifdef GNNBENCH_X86
#define GNNBENCH_FMA256 __attribute__((target("avx2,fma")))
#endif

namespace gnnbench {
namespace {

constexpr int64_t kLineWords = kLine / static_cast<int64_t>(sizeof(uint32_t));
constexpr int64_t kCopyLines = (int64_t{1} << 20) / kLine;  // per chunk
constexpr int64_t kRowsBytes = int64_t{1} << 18;            // of rows per chunk
constexpr int64_t kAheadBytes = int64_t{1} << 15;           // prefetch distance
constexpr int kReads = 4;    // independent sums: each addition has a latency of one cycle
constexpr int kChains = 12;  // of multiply-adds: two ports, latency up to six cycles

template <class T, int kBytes>
struct Wide {
  typedef T type __attribute__((vector_size(kBytes), may_alias));
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
};

template <int kBytes>
[[gnu::always_inline]] inline uint32_t read_lines(const uint32_t* words, int64_t lines,
                                                  int64_t passes) {
  using V = typename Wide<uint32_t, kBytes>::type;
  constexpr int kLanes = Wide<uint32_t, kBytes>::kLanes;
  V sums[kReads] = {};
  const int64_t vectors = lines * kLineWords / kLanes;
  for (int64_t p = 0; p < passes; ++p) {
    const V* at = reinterpret_cast<const V*>(words);
    int64_t v = 0;
    for (; v + kReads <= vectors; v += kReads) {
      for (int k = 0; k < kReads; ++k) sums[k] += at[v + k];
    }
    for (; v < vectors; ++v) sums[0] += at[v];
    asm volatile("" : : "r"(words) : "memory");  // forces the next pass to read the words again
  }
  uint32_t sum = 0;
  for (int k = 0; k < kReads; ++k) {
    for (int lane = 0; lane < kLanes; ++lane) sum += sums[k][lane];
  }
  return sum;
}

// `zero` and `one` are unknown at compile time. Each chain loads its own start value; otherwise the
// compiler would merge equal chains.
template <int kBytes>
[[gnu::always_inline]] inline double fma_chains(int64_t steps, const volatile float& zero,
                                                float one) {
  using V = typename Wide<float, kBytes>::type;
  V x[kChains] = {};
  V ones = {};
  ones += one;
  for (int k = 0; k < kChains; ++k) x[k] += zero;
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) x[k] = x[k] * ones + ones;
  }
  double sum = 0;
  for (int k = 0; k < kChains; ++k) {
    for (int lane = 0; lane < Wide<float, kBytes>::kLanes; ++lane) sum += x[k][lane];
  }
  return sum;
}

uint32_t read_128(const uint32_t* words, int64_t lines, int64_t passes) {
  return read_lines<16>(words, lines, passes);
}
double fma_128(int64_t steps, const volatile float& zero, float one) {
  return fma_chains<16>(steps, zero, one);
}
void copy_plain(const char* from, int64_t lines, char* to) {
  std::memcpy(to, from, static_cast<size_t>(lines * kLine));
}

#ifdef GNNBENCH_X86
GNNBENCH_AVX2 uint32_t read_256(const uint32_t* words, int64_t lines, int64_t passes) {
  return read_lines<32>(words, lines, passes);
}
GNNBENCH_AVX512 uint32_t read_512(const uint32_t* words, int64_t lines, int64_t passes) {
  return read_lines<64>(words, lines, passes);
}
GNNBENCH_FMA256 double fma_256(int64_t steps, const volatile float& zero, float one) {
  return fma_chains<32>(steps, zero, one);
}
GNNBENCH_AVX512 double fma_512(int64_t steps, const volatile float& zero, float one) {
  return fma_chains<64>(steps, zero, one);
}
GNNBENCH_AVX2 void copy_256(const char* from, int64_t lines, char* to) {
  for (int64_t b = 0; b < lines * kLine; b += kLine) LineAvx2()(to + b, from + b);
  _mm_sfence();
}
GNNBENCH_AVX512 void copy_512(const char* from, int64_t lines, char* to) {
  for (int64_t b = 0; b < lines * kLine; b += kLine) LineAvx512()(to + b, from + b);
  _mm_sfence();
}
#endif

struct Ways {
  uint32_t (*read)(const uint32_t*, int64_t, int64_t);
  double (*fma)(int64_t, const volatile float&, float);
  void (*copy)(const char*, int64_t, char*);
};

Ways ways_of(Vectors vectors) {
#ifdef GNNBENCH_X86
  if (vectors == Vectors::k512) return {read_512, fma_512, copy_512};
  if (vectors == Vectors::k256) return {read_256, fma_256, copy_256};
#endif
  return {read_128, fma_128, copy_plain};
}

// Sums the rows ids[begin, end); `wrong` gets the position of the first invalid id. Auto-vectorised
// sums suffice because memory is the bottleneck.
GNNBENCH_CLONES uint32_t sum_rows(const uint32_t* words, int64_t rows, int64_t width,
                                  const int64_t* ids, int64_t begin, int64_t end, int64_t ahead,
                                  int64_t* wrong) {
  uint32_t sum = 0;
  int64_t next = begin;
  for (int64_t i = begin; i < end; ++i) {
    for (; next < end && next < i + ahead; ++next) {
      if (ids[next] < 0 || ids[next] >= rows) continue;
      const char* row = reinterpret_cast<const char*>(words + ids[next] * width);
      const char* stop = row + width * static_cast<int64_t>(sizeof(uint32_t));
      row -= reinterpret_cast<uintptr_t>(row) % kLine;
      for (; row < stop; row += kLine) __builtin_prefetch(row, 0, 2);
    }
    if (ids[i] < 0 || ids[i] >= rows) {
      *wrong = i;
      return 0;
    }
    const uint32_t* row = words + ids[i] * width;
    for (int64_t k = 0; k < width; ++k) sum += row[k];
  }
  return sum;
}

}  // namespace

bool has_vectors(Vectors vectors) {
#ifdef GNNBENCH_X86
  if (vectors == Vectors::k512) return __builtin_cpu_supports("avx512f");
  if (vectors == Vectors::k256) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  }
#endif
  return vectors == Vectors::k128;
}

Vectors widest_vectors() {
  static const Vectors found = has_vectors(Vectors::k512)   ? Vectors::k512
                               : has_vectors(Vectors::k256) ? Vectors::k256
                                                            : Vectors::k128;
  return found;
}

void ceiling_copy(const char* from, int64_t lines, char* to, Vectors vectors) {
  const Ways ways = ways_of(vectors);
  parallel_chunks(lines, kCopyLines, [&](int64_t, int64_t begin, int64_t end) {
    ways.copy(from + begin * kLine, end - begin, to + begin * kLine);
  });
}

uint32_t ceiling_read(const uint32_t* words, int64_t lines, int64_t passes, Vectors vectors) {
  const Ways ways = ways_of(vectors);
  const int64_t share = num_chunks(lines, num_threads());
  std::atomic<uint32_t> sum{0};
  parallel_chunks(lines, share, [&](int64_t, int64_t begin, int64_t end) {
    sum += ways.read(words + begin * kLineWords, end - begin, passes);
  });
  return sum;
}

uint32_t ceiling_rows(const uint32_t* words, int64_t rows, int64_t width, const int64_t* ids,
                      int64_t n, int64_t* wrong) {
  const int64_t bytes = std::max<int64_t>(width * static_cast<int64_t>(sizeof(uint32_t)), 1);
  const int64_t ahead = std::clamp<int64_t>(kAheadBytes / bytes, 1, 64);
  std::atomic<uint32_t> sum{0};
  std::atomic<int64_t> first{INT64_MAX};
  parallel_chunks(n, std::max<int64_t>(kRowsBytes / bytes, 64), [&](int64_t, int64_t b, int64_t e) {
    int64_t bad = -1;
    sum += sum_rows(words, rows, width, ids, b, e, ahead, &bad);
    int64_t seen = first.load(std::memory_order_relaxed);
    while (bad >= 0 && bad < seen && !first.compare_exchange_weak(seen, bad)) {
    }
  });
  *wrong = first == INT64_MAX ? -1 : first.load();
  return sum;
}

double ceiling_fma(int64_t steps, Vectors vectors) {
  const Ways ways = ways_of(vectors);
  const volatile float zero = 0.0F, one = 1.0F;
  std::atomic<double> sum{0};
  parallel_chunks(num_threads(), 1, [&](int64_t, int64_t, int64_t) {
    const double own = ways.fma(steps, zero, one);
    double seen = sum.load();
    while (!sum.compare_exchange_weak(seen, seen + own)) {
    }
  });
  return sum;
}

}  // namespace gnnbench
