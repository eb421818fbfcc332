// Many copies within the device's memory by one launch.
#pragma once

#include <vector>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// `bytes`, a multiple of 4, both addresses of 4. Without `from` numbers of int32 are written, the
// i-th of them min(begin + i * step, most).
struct Copy {
  const void* from;
  void* to;
  int64_t bytes;
  int64_t begin = 0, step = 0, most = 0;
};

void copy_all(Launch launch, const std::vector<Copy>& copies);

}  // namespace gnnbench::cuda
