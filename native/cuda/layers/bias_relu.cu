#include <algorithm>

#include "cuda/aggregate/pack.cuh"
#include "cuda/layers/bias_relu.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;           // rows that a thread loads at once
constexpr int64_t kMostParts = 528;  // four blocks per multiprocessor of the largest GPUs
constexpr int64_t kRowsOfPart = 64;  // at least

// A thread's position: `lanes` adjacent threads process a row's packs, the groups of a block
// consecutive rows. Blocks along x interleave rows; blocks along y have other columns.
struct Place {
  int lanes_log2;
  int64_t rows, packs;  // of the matrix

  __device__ int64_t pack() const {
    return (static_cast<int64_t>(blockIdx.y) << lanes_log2) +
           (threadIdx.x & ((1 << lanes_log2) - 1));
  }
  __device__ int64_t first_row() const {
    return blockIdx.x * groups() + (threadIdx.x >> lanes_log2);
  }
  __device__ int64_t step() const { return gridDim.x * groups(); }
  __device__ int64_t groups() const { return kThreads >> lanes_log2; }
};

template <class Real, int kWidth>
__global__ void __launch_bounds__(kThreads)
    bias_relu_kernel(Place place, const Real* __restrict__ bias, Real* __restrict__ x) {
  const int64_t pack = place.pack();
  if (pack >= place.packs) return;
  const auto added = load_pack<Real, kWidth>(bias, pack);
  using Word = typename Elements<Real, kWidth>::Word;
  auto* const words = reinterpret_cast<Word*>(x);
  for (int64_t row = place.first_row(); row < place.rows; row += kAtOnce * place.step()) {
    Elements<Real, kWidth> own[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t at = row + k * place.step();
      if (at < place.rows) own[k].word = words[at * place.packs + pack];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t at = row + k * place.step();
      if (at >= place.rows) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const Real sum = own[k].value[i] + added.value[i];
        own[k].value[i] = sum < 0 ? Real{0} : sum;
      }
      words[at * place.packs + pack] = own[k].word;
    }
  }
}

template <class Real, int kWidth>
__global__ void __launch_bounds__(kThreads)
    bias_relu_backward_kernel(Place place, const Real* __restrict__ grad,
                              const Real* __restrict__ y, Real* __restrict__ parts,
                              Real* __restrict__ grad_x) {
  using Word = typename Elements<Real, kWidth>::Word;
  __shared__ Real sums[kThreads][kWidth];
  const int64_t pack = place.pack();
  Real sum[kWidth] = {};
  if (pack < place.packs) {
    auto* const out = reinterpret_cast<Word*>(grad_x);
    for (int64_t row = place.first_row(); row < place.rows; row += kAtOnce * place.step()) {
      Elements<Real, kWidth> back[kAtOnce], result[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t at = row + k * place.step();
        if (at >= place.rows) continue;
        back[k] = load_pack<Real, kWidth>(grad, at * place.packs + pack);
        result[k] = load_pack<Real, kWidth>(y, at * place.packs + pack);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t at = row + k * place.step();
        if (at >= place.rows) continue;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          if (result[k].value[i] <= 0) back[k].value[i] = 0;
          sum[i] += back[k].value[i];
        }
        out[at * place.packs + pack] = back[k].word;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[threadIdx.x][i] = sum[i];
  __syncthreads();
  const int lanes = 1 << place.lanes_log2;
  if (static_cast<int>(threadIdx.x) >= lanes || pack >= place.packs) return;
  for (int other = threadIdx.x + lanes; other < kThreads; other += lanes) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] += sums[other][i];
  }
  Real* const part = parts + (blockIdx.x * place.packs + pack) * kWidth;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) part[i] = sum[i];
}

constexpr int kColumns = 32;  // per block that adds up parts, with kAdders threads each
constexpr int kAdders = 16;

template <class Real>
__global__ void __launch_bounds__(kColumns* kAdders)
    add_parts_kernel(const Real* __restrict__ parts, int64_t count, int64_t dim,
                     Real* __restrict__ out) {
  __shared__ Real sums[kAdders][kColumns];
  const int lane = threadIdx.x % kColumns, adder = threadIdx.x / kColumns;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + lane;
  Real sum = 0;
  if (column < dim) {
#pragma unroll 4
    for (int64_t part = adder; part < count; part += kAdders) {
      sum += __ldg(parts + part * dim + column);
    }
  }
  sums[adder][lane] = sum;
  __syncthreads();
  if (adder > 0 || column >= dim) return;
  for (int other = 1; other < kAdders; ++other) sum += sums[other][lane];
  out[column] = sum;
}

// Calls run(the constant kWidth, place, grid) with the widest packs that divide both addresses and,
// if present, `bias`.
template <class Real, class Run>
void by_packs(const void* a, const void* b, int64_t rows, int64_t dim, const Run& run) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(Real));
  const auto with = [&](auto width) {
    const int64_t packs = dim / width.value;
    int lanes_log2 = 0;
    while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < packs) ++lanes_log2;
    const dim3 grid(static_cast<unsigned>(bias_relu_parts(rows)),
                    static_cast<unsigned>(blocks_for(packs, int64_t{1} << lanes_log2)));
    run(width, Place{lanes_log2, rows, packs}, grid);
  };
  if (pack_bytes<Real>(a, b, dim) == 16) return with(std::integral_constant<int, kWide>{});
  with(std::integral_constant<int, 1>{});
}

}  // namespace

int64_t bias_relu_parts(int64_t rows) {
  return std::min(kMostParts, std::max<int64_t>(blocks_for(rows, kRowsOfPart), 1));
}

template <class Real>
void bias_relu(Launch launch, const Real* bias, int64_t rows, int64_t dim, Real* x) {
  if (rows == 0 || dim == 0) return;
  by_packs<Real>(x, bias, rows, dim, [&](auto width, Place place, dim3 grid) {
    bias_relu_kernel<Real, width.value><<<grid, kThreads, 0, launch.stream>>>(place, bias, x);
  });
  GNNBENCH_CUDA_LAUNCHED(launch, "bias_relu_kernel");
}

template <class Real>
void bias_relu_backward(Launch launch, const Real* grad, const Real* y, int64_t rows, int64_t dim,
                        Real* parts, Real* grad_x, Real* grad_bias) {
  if (dim == 0) return;
  by_packs<Real>(grad, y, rows, dim, [&](auto width, Place place, dim3 grid) {
    bias_relu_backward_kernel<Real, width.value>
        <<<grid, kThreads, 0, launch.stream>>>(place, grad, y, parts, grad_x);
  });
  GNNBENCH_CUDA_LAUNCHED(launch, "bias_relu_backward_kernel");
  add_parts_kernel<Real>
      <<<static_cast<unsigned>(blocks_for(dim, kColumns)), kColumns * kAdders, 0, launch.stream>>>(
          parts, bias_relu_parts(rows), dim, grad_bias);
  GNNBENCH_CUDA_LAUNCHED(launch, "add_parts_kernel");
}

#define GNNBENCH_BIAS_RELU(Real)                                                             \
  template void bias_relu<Real>(Launch, const Real*, int64_t, int64_t, Real*);               \
  template void bias_relu_backward<Real>(Launch, const Real*, const Real*, int64_t, int64_t, \
                                         Real*, Real*, Real*);
GNNBENCH_BIAS_RELU(float)
GNNBENCH_BIAS_RELU(double)
#undef GNNBENCH_BIAS_RELU

}  // namespace gnnbench::cuda
