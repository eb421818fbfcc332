#include "cpu/aggregate/symmetric.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kEdges = 8192, kRows = 1024;  // of a chunk

}  // namespace

void symmetric_weights(const BlockView& block, int64_t num_src, int32_t* counts, float* out) {
  std::fill(counts, counts + num_src, 0);
  parallel_chunks(block.num_edges, kEdges, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      std::atomic_ref(counts[block.indices[e]]).fetch_add(1, std::memory_order_relaxed);
    }
  });
  parallel_chunks(block.num_rows, kRows, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t begin = block.indptr[row], end = block.indptr[row + 1];
      const float degree = static_cast<float>(end - begin);
      for (int64_t e = begin; e < end; ++e) {
        out[e] = 1.0f / std::sqrt(degree * static_cast<float>(counts[block.indices[e]]));
      }
    }
  });
}

}  // namespace gnnbench
