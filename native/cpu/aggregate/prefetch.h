// Prefetching of rows.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gnnbench {

constexpr int64_t kAhead = 8;  // entries between a prefetch and its use

template <class T>
inline __attribute__((always_inline)) void prefetch_row(const T* row, int64_t dim) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kMostLines = 64;  // the hardware prefetcher follows longer rows
  const char* line = reinterpret_cast<const char*>(row);
  const char* end = std::min(reinterpret_cast<const char*>(row + dim), line + kMostLines * kLine);
  for (; line < end; line += kLine) __builtin_prefetch(line);
}

}  // namespace gnnbench
