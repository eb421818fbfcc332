// Writing past the caches: a line that is written whole need not be read first, and what others
// keep in the caches stays there.
#pragma once

#include <cstdint>

#include "cpu/common/multiversion.h"

namespace gnnbench {

constexpr int64_t kLine = 64;

// How a result is written: through the caches, or past them by vectors of 32 or 64 bytes.
enum class Stores { kCached, kAvx2, kAvx512 };

// Whether this machine can.
bool can_store(Stores stores);

// The best that this machine can for n rows of row_bytes: a small result stays in the caches for
// whoever reads it next, and narrow rows that end inside lines cost more to collect than is saved.
Stores best_stores(int64_t n, int64_t row_bytes);

#ifdef GNNBENCH_X86
// A line to where one begins, past the caches. Others see it after _mm_sfence() only.
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

// Writes bytes one after the other, of any length and alignment, as whole lines past the caches.
// What is no whole line, at both ends, is written as usual: others may own the rest of it.
class LineWriter {
 public:
  // kCached is none of `stores`.
  LineWriter(char* to, Stores stores);
  void append(const char* from, int64_t bytes);
  // Once, after the last byte.
  void finish();

 private:
  static constexpr int64_t kRoom = 64 * kLine;  // stays in the first cache
  using CopyLines = void (*)(char* to, const char* from, int64_t lines);

  void flush();

  alignas(kLine) char lines_[kRoom];
  char* to_;         // a line's begin: where lines_ goes
  int64_t held_;     // bytes of lines_
  int64_t foreign_;  // first bytes of lines_ that are not ours
  CopyLines copy_;
};
#endif

}  // namespace gnnbench
