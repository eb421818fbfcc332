// Destinations in the caller's id dtype.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench::cuda {

// Destinations can have another id dtype than the graph.
struct Vertices {
  const void* data;
  bool wide;  // int64_t, else int32_t

  GNNBENCH_HD int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

}  // namespace gnnbench::cuda
