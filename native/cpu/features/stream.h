// Non-temporal stores: a line that is written whole is not read first, and other data stays in the
// caches.
#pragma once

#include <cstdint>

#include "cpu/common/multiversion.h"

namespace gnnbench {

constexpr int64_t kLine = 64;

// How a result is written: through the caches, or past them with vectors of 32 or 64 bytes.
enum class Stores { kCached, kAvx2, kAvx512 };

// Whether this machine supports these stores.
bool can_store(Stores stores);

// The best supported stores for n rows of row_bytes. A small result stays in the caches for its
// next reader. Narrow rows that end inside lines cost more to collect than non-temporal stores
// save.
Stores best_stores(int64_t n, int64_t row_bytes);

#ifdef GNNBENCH_X86
// Copies a line to a line-aligned address, past the caches. Other threads see it only after
// _mm_sfence().
struct LineAvx512 {
  GNNBENCH_AVX512 void operator()(char* to, const char* from) const {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
};

struct LineAvx2 {
  GNNBENCH_AVX2 void operator()(char* to, const char* from) const {
    const auto* in = reinterpret_cast<const __m256i*>(from);
    auto* out = reinterpret_cast<__m256i*>(to);
    const __m256i low = _mm256_loadu_si256(in), high = _mm256_loadu_si256(in + 1);
    _mm256_stream_si256(out, low);
    _mm256_stream_si256(out + 1, high);
  }
};

// Writes consecutive bytes of any length and alignment as whole lines past the caches. Partial
// lines at both ends use ordinary stores, because other threads can own the rest of them.
class LineWriter {
 public:
  // `stores` must not be kCached.
  LineWriter(char* to, Stores stores);
  void append(const char* from, int64_t bytes);
  // Call this once, after the last byte.
  void finish();

 private:
  static constexpr int64_t kRoom = 64 * kLine;  // fits the L1 cache
  using CopyLines = void (*)(char* to, const char* from, int64_t lines);

  void flush();

  alignas(kLine) char lines_[kRoom];
  char* to_;         // line-aligned destination of lines_
  int64_t held_;     // number of bytes in lines_
  int64_t foreign_;  // number of leading bytes of lines_ that belong to others
  CopyLines copy_;
};
#endif

}  // namespace gnnbench
