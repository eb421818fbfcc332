// The launcher of native/cuda/common/copies.cu under a name that Python can call.
#include "cuda/common/copies.h"

#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

extern "C" {

// Each piece is six numbers: from, to, bytes, begin, step, most.
void copy_all_of(const int64_t* pieces, int64_t count) {
  std::vector<Copy> copies;
  for (int64_t i = 0; i < count; ++i, pieces += 6) {
    copies.push_back({reinterpret_cast<const void*>(pieces[0]), reinterpret_cast<void*>(pieces[1]),
                      pieces[2], pieces[3], pieces[4], pieces[5]});
  }
  copy_all({nullptr, "test"}, copies);
}
}
