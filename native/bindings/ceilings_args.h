// Argument checks of the peak-measuring operators, for both devices.
#pragma once

#include <algorithm>

#include "bindings/checks.h"

namespace gnnbench {

constexpr int64_t kCeilingLine = 64;                 // bytes
constexpr int64_t kCeilingSteps = int64_t{1} << 23;  // float32 counts are exact up to here
constexpr int64_t kCeilingLines = int64_t{1} << 34;  // of all passes together: 1 TiB

inline int64_t ceiling_lines(const Tensor& t) {
  return t.numel() * static_cast<int64_t>(t.element_size()) / kCeilingLine;
}

inline void check_ceiling_words(const Tensor& t, const char* name) {
  check_layout(t, name, t.dim());
  check_dtype(t, name, ScalarType::Int);
  const bool whole = t.numel() * 4 % kCeilingLine == 0 &&
                     reinterpret_cast<uintptr_t>(t.data_ptr()) % kCeilingLine == 0;
  if (!whole) fail(name, " must be whole lines of ", kCeilingLine, " bytes and line-aligned");
}

inline void check_ceiling_copy(const Tensor& source, const Tensor& target) {
  check_ceiling_words(source, "source");
  check_ceiling_words(target, "target");
  if (source.numel() != target.numel()) fail("target must be as large as source");
  check_apart(target, "target", source, "source");
}

inline void check_ceiling_read(const Tensor& words, int64_t passes) {
  check_ceiling_words(words, "words");
  if (passes < 1) fail("passes must be at least 1, it is ", passes);
  const int64_t most =
      std::max(kCeilingLines / std::max(ceiling_lines(words), int64_t{1}), int64_t{1});
  if (passes > most) {
    fail("passes must be at most ", most, " (1 TiB read in all), it is ", passes);
  }
}

inline void check_ceiling_rows(const Tensor& words, const Tensor& ids) {
  check_layout(words, "words", 2);
  check_dtype(words, "words", ScalarType::Int);
  product_of_sizes(words.size(1), sizeof(int32_t), "a row of words");
  check_layout(ids, "ids", 1);
  check_dtype(ids, "ids", ScalarType::Long);
}

inline void check_ceiling_steps(int64_t steps) {
  if (steps < 1 || steps > kCeilingSteps) {
    fail("steps must be 1 to ", kCeilingSteps, ", it is ", steps);
  }
}

}  // namespace gnnbench
