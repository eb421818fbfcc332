#include "cpu/layers/dropout.h"

#include <algorithm>
#include <vector>

#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"
#include "cpu/common/philox.h"

namespace gnnbench {
namespace {

constexpr int64_t kBlocks = 512;  // of random numbers at a time: they stay in the L1 cache

// target_clones applies to plain functions, not to templates.
#define GNNBENCH_APPLY(Real)                                                                     \
  GNNBENCH_CLONES void apply(const uint32_t* __restrict__ words, uint32_t threshold, Real scale, \
                             int64_t n, const Real* __restrict__ x, Real* __restrict__ out) {    \
    for (int64_t i = 0; i < n; ++i) out[i] = words[i] < threshold ? Real{0} : x[i] * scale;      \
  }
GNNBENCH_APPLY(float)
GNNBENCH_APPLY(double)
#undef GNNBENCH_APPLY

}  // namespace

template <class Real, class Id>
void dropout(const Real* x, const Id* nodes, int64_t rows, int64_t dim, uint64_t key,
             uint32_t batch, uint32_t layer, uint32_t threshold, Real scale, Real* out) {
  const int64_t blocks = (dim + 3) / 4, chunk_rows = std::max<int64_t>(kBlocks / blocks, 1);
  parallel_chunks(rows, chunk_rows, [&](int64_t, int64_t begin, int64_t end) {
    const int64_t padded = philox_padded((end - begin) * blocks);
    std::vector<uint32_t> memory(static_cast<size_t>(7 * padded));
    uint32_t *c0 = memory.data(), *c1 = c0 + padded, *c2 = c1 + padded, *words = c2 + padded;
    for (int64_t row = begin, at = 0; row < end; ++row) {
      const auto vertex = static_cast<uint64_t>(nodes[row]);
      for (int64_t block = 0; block < blocks; ++block, ++at) {
        c0[at] = static_cast<uint32_t>(block);
        c1[at] = static_cast<uint32_t>(vertex);
        c2[at] = static_cast<uint32_t>((vertex >> 32) & 0xFFFFu) | (layer << 16);
      }
    }
    philox_blocks(key, batch, c0, c1, c2, padded, words);
    for (int64_t row = begin; row < end; ++row) {
      apply(words + 4 * (row - begin) * blocks, threshold, scale, dim, x + row * dim,
            out + row * dim);
    }
  });
}

#define GNNBENCH_DROPOUT(Real, Id)                                                              \
  template void dropout<Real, Id>(const Real*, const Id*, int64_t, int64_t, uint64_t, uint32_t, \
                                  uint32_t, uint32_t, Real, Real*);
GNNBENCH_DROPOUT(float, int32_t)
GNNBENCH_DROPOUT(float, int64_t)
GNNBENCH_DROPOUT(double, int32_t)
GNNBENCH_DROPOUT(double, int64_t)
#undef GNNBENCH_DROPOUT

}  // namespace gnnbench
