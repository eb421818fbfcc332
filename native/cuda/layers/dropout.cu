#include <algorithm>

#include "cuda/aggregate/pack.cuh"
#include "cuda/layers/dropout.h"
#include "gnnbench/rng.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kDrawn = 4;  // columns of a thread: as many as a block of random numbers has words

// `lanes` adjacent threads process a row, the groups of a block consecutive rows. Blocks along y
// have other columns.
template <class Real, class Id, int kWidth>
__global__ void __launch_bounds__(kThreads)
    dropout_kernel(const Real* __restrict__ x, const Id* __restrict__ nodes, int64_t rows,
                   int64_t dim, int lanes_log2, uint64_t key, uint32_t batch,
                   const int64_t* __restrict__ place, uint32_t layer, uint32_t threshold,
                   Real scale, Real* __restrict__ out) {
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (kThreads >> lanes_log2) + (threadIdx.x >> lanes_log2);
  const int64_t group =
      (static_cast<int64_t>(blockIdx.y) << lanes_log2) + (threadIdx.x & ((1 << lanes_log2) - 1));
  if (row >= rows || kDrawn * group >= dim) return;
  if (place != nullptr) {
    key = static_cast<uint64_t>(__ldg(place));
    batch = static_cast<uint32_t>(__ldg(place + 1));
  }
  const Draws draws{key, static_cast<uint64_t>(__ldg(nodes + row)), layer, batch};
  const Philox4 drawn = draws.block(static_cast<uint32_t>(group));
  const uint32_t words[kDrawn] = {drawn.x, drawn.y, drawn.z, drawn.w};
#pragma unroll
  for (int first = 0; first < kDrawn; first += kWidth) {
    const int64_t column = kDrawn * group + first;
    if (column >= dim) break;
    const int64_t at = (row * dim + column) / kWidth;
    auto pack = load_pack<Real, kWidth>(x, at);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      pack.value[i] = words[first + i] < threshold ? Real{0} : pack.value[i] * scale;
    }
    reinterpret_cast<typename Elements<Real, kWidth>::Word*>(out)[at] = pack.word;
  }
}

}  // namespace

template <class Real, class Id>
void dropout(Launch launch, const Real* x, const Id* nodes, int64_t rows, int64_t dim, uint64_t key,
             uint32_t batch, const int64_t* place, uint32_t layer, uint32_t threshold, Real scale,
             Real* out) {
  if (rows == 0 || dim == 0) return;
  const int64_t groups = blocks_for(dim, kDrawn);
  int lanes_log2 = 0;
  while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < groups) ++lanes_log2;
  const dim3 grid(static_cast<unsigned>(blocks_for(rows, kThreads >> lanes_log2)),
                  static_cast<unsigned>(blocks_for(groups, int64_t{1} << lanes_log2)));
  constexpr int kWide = 16 / static_cast<int>(sizeof(Real));
  if (pack_bytes<Real>(x, out, dim) == 16) {
    dropout_kernel<Real, Id, kWide><<<grid, kThreads, 0, launch.stream>>>(
        x, nodes, rows, dim, lanes_log2, key, batch, place, layer, threshold, scale, out);
  } else {
    dropout_kernel<Real, Id, 1><<<grid, kThreads, 0, launch.stream>>>(
        x, nodes, rows, dim, lanes_log2, key, batch, place, layer, threshold, scale, out);
  }
  GNNBENCH_CUDA_LAUNCHED(launch, "dropout_kernel");
}

#define GNNBENCH_DROPOUT(Real, Id)                                                            \
  template void dropout<Real, Id>(Launch, const Real*, const Id*, int64_t, int64_t, uint64_t, \
                                  uint32_t, const int64_t*, uint32_t, uint32_t, Real, Real*);
GNNBENCH_DROPOUT(float, int32_t)
GNNBENCH_DROPOUT(float, int64_t)
GNNBENCH_DROPOUT(double, int32_t)
GNNBENCH_DROPOUT(double, int64_t)
#undef GNNBENCH_DROPOUT

}  // namespace gnnbench::cuda
