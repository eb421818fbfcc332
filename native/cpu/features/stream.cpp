#include "cpu/features/stream.h"

#include <algorithm>
#include <cstring>

namespace gnnbench {
namespace {

// Measured on two cores with 2 MiB of L2 each. If all threads then read the result at once,
// non-temporal stores break even at 4 MiB and gain a sixth at 16 MiB. Rows that are not whole lines
// break even at 192 bytes.
constexpr int64_t kStreamFrom = int64_t{4} << 20;
constexpr int64_t kCollectFrom = 192;

#ifdef GNNBENCH_X86
GNNBENCH_AVX512 void lines_avx512(char* to, const char* from, int64_t lines) {
  for (int64_t b = 0; b < lines * kLine; b += kLine) LineAvx512()(to + b, from + b);
}

GNNBENCH_AVX2 void lines_avx2(char* to, const char* from, int64_t lines) {
  for (int64_t b = 0; b < lines * kLine; b += kLine) LineAvx2()(to + b, from + b);
}
#endif

}  // namespace

bool can_store(Stores stores) {
#ifdef GNNBENCH_X86
  if (stores == Stores::kAvx512) return __builtin_cpu_supports("avx512f");
  if (stores == Stores::kAvx2) return __builtin_cpu_supports("avx2");
#endif
  return stores == Stores::kCached;
}

Stores best_stores(int64_t n, int64_t row_bytes) {
  static const Stores widest = can_store(Stores::kAvx512) ? Stores::kAvx512
                               : can_store(Stores::kAvx2) ? Stores::kAvx2
                                                          : Stores::kCached;
  const bool narrow = row_bytes % kLine != 0 && row_bytes < kCollectFrom;
  return narrow || n * row_bytes < kStreamFrom ? Stores::kCached : widest;
}

#ifdef GNNBENCH_X86
LineWriter::LineWriter(char* to, Stores stores)
    : foreign_(static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine)),
      copy_(stores == Stores::kAvx512 ? lines_avx512 : lines_avx2) {
  held_ = foreign_;
  to_ = to - foreign_;
}

void LineWriter::append(const char* from, int64_t bytes) {
  while (bytes > 0) {
    const int64_t part = std::min(bytes, kRoom - held_);
    std::memcpy(lines_ + held_, from, static_cast<size_t>(part));
    held_ += part;
    from += part;
    bytes -= part;
    if (held_ == kRoom) flush();
  }
}

void LineWriter::flush() {
  int64_t begin = 0;
  if (foreign_ > 0) {
    begin = std::min(kLine, held_);
    std::memcpy(to_ + foreign_, lines_ + foreign_, static_cast<size_t>(begin - foreign_));
    foreign_ = 0;
  }
  const int64_t whole = (held_ - begin) / kLine;
  copy_(to_ + begin, lines_ + begin, whole);
  begin += whole * kLine;
  std::memcpy(to_ + begin, lines_ + begin, static_cast<size_t>(held_ - begin));
  to_ += held_;
  held_ = 0;
}

void LineWriter::finish() {
  if (held_ > foreign_) flush();
}
#endif

}  // namespace gnnbench
