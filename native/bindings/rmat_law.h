// Validated arguments of the R-MAT operator, for both devices.
#pragma once

#include <vector>

#include "bindings/checks.h"
#include "gnnbench/rmat.h"

namespace gnnbench {

inline rmat::Law rmat_law(int64_t key, int64_t scale, int64_t num_edges,
                          const std::vector<int64_t>& ends, const Tensor& names) {
  if (scale < 1 || scale >= rmat::kMaxScale) {
    fail("scale must be at least 1 and below ", rmat::kMaxScale, ", it is ", scale);
  }
  if (num_edges < 0) fail("num_edges must be at least 0, it is ", num_edges);
  if (ends.size() != 3) fail("ends must hold 3 numbers, it has ", ends.size());
  rmat::Law law{static_cast<uint64_t>(key), static_cast<int>(scale), {}};
  int64_t last = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (ends[i] < last || ends[i] > 65536) fail("ends must rise from 1 to at most 65536");
    law.ends[i] = static_cast<uint32_t>(last = ends[i]);
  }
  check_layout(names, "names", 1);
  check_dtype(names, "names", ScalarType::Long);
  if (names.numel() != int64_t{1} << scale) {
    fail("names must hold ", int64_t{1} << scale, " nodes, it has ", names.numel());
  }
  return law;
}

[[noreturn]] inline void fail_names() { fail("names must be a permutation of the nodes"); }

}  // namespace gnnbench
