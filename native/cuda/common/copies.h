// Many copies within the device's memory by one launch.
#pragma once

#include <vector>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// `bytes`, a multiple of 4, both addresses of 4.
struct Copy {
  const void* from;
  void* to;
  int64_t bytes;
};

void copy_all(Launch launch, const std::vector<Copy>& copies);

}  // namespace gnnbench::cuda
