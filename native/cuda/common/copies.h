// Many copies within device memory in one launch.
#pragma once

#include <vector>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Copies `bytes`, a multiple of 4, between addresses aligned to 4. If `from` is null, writes int32
// numbers instead: the i-th is min(begin + i * step, most).
struct Copy {
  const void* from;
  void* to;
  int64_t bytes;
  int64_t begin = 0, step = 0, most = 0;
};

void copy_all(Launch launch, const std::vector<Copy>& copies);

}  // namespace gnnbench::cuda
