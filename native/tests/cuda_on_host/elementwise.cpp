// The launcher and the addresses of native/cuda/features/elementwise.cu under names that Python can
// call.
#include "cuda/features/elementwise.h"

#include "cuda/features/elementwise.cuh"
#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

extern "C" {

void elementwise(const void* table, int64_t num_rows, const void* ids, int wide, int64_t n,
                 int64_t row_bytes, void* out, int shifted) {
  const Launch launch{nullptr, "test"};
  const auto run = [&](const auto* which) {
    gather_elementwise(launch, table, num_rows, which, n, row_bytes, out, shifted != 0);
  };
  wide ? run(static_cast<const int64_t*>(ids)) : run(static_cast<const int32_t*>(ids));
}

// src[i] and dst[i]: the elements that the thread of element i reads and writes.
void elements_of(const int64_t* ids, int64_t n, int64_t feat_size, int narrow, int shifted,
                 int64_t* dst, int64_t* src) {
  const auto run = [&](auto index) {
    using Index = decltype(index);
    for (int64_t i = 0; i < n * feat_size; ++i) {
      const Element<Index> at =
          listing2(static_cast<Index>(i), static_cast<Index>(ids[i / feat_size]),
                   static_cast<Index>(feat_size), shifted != 0);
      dst[i] = at.dst;
      src[i] = at.src;
    }
  };
  narrow ? run(int32_t{}) : run(int64_t{});
}
}
