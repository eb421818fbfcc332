#include <cmath>
#include <limits>

#include "cuda/aggregate/edges.h"
#include "cuda/aggregate/pack.cuh"
#include "cuda/common/device_assert.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

struct Range {
  int64_t begin, end;
};

__device__ __forceinline__ Range edges_of(const int32_t* indptr, int64_t row, int64_t num_edges) {
  const int32_t begin = __ldg(indptr + row), end = __ldg(indptr + row + 1);
  assert(begin >= 0 && begin <= end && end <= num_edges && "gnnbench edges: indptr is broken");
  return {begin, end};
}

// Each group of lanes calls work(own). If it returns true, because the row is long, all threads of
// the block then call together(theirs), one row after the other.
template <class Work, class Together>
__device__ __forceinline__ void by_groups(int lanes_log2, int64_t items, Work work,
                                          Together together) {
  __shared__ bool is_long[kThreads];
  const int groups = kThreads >> lanes_log2;
  const int group = static_cast<int>(threadIdx.x) >> lanes_log2;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * groups;
  const bool deferred = first + group < items && work(first + group);
  if (!__syncthreads_or(deferred)) return;
  is_long[group] = deferred;  // the same for all lanes
  __syncthreads();
  for (int g = 0; g < groups; ++g) {
    if (is_long[g]) together(first + g);
  }
}

template <class Real>
__global__ void __launch_bounds__(kThreads)
    edge_add_kernel(const int32_t* __restrict__ indptr, const int32_t* __restrict__ indices,
                    const Real* __restrict__ src, const Real* __restrict__ dst, int64_t num_edges,
                    int64_t num_src, int64_t num_rows, int64_t heads, int lanes_log2,
                    Real* __restrict__ out) {
  const int lanes = 1 << lanes_log2;
  bool valid = true;
  const auto add = [&](int64_t row, Range edges, int64_t first, int64_t step) {
    for (int64_t i = edges.begin * heads + first; i < edges.end * heads; i += step) {
      const int64_t e = i / heads, head = i - e * heads;
      const int32_t source = __ldg(indices + e);
      const bool inside = source >= 0 && source < num_src;
      valid = valid && inside;
      out[i] = __ldg(src + (inside ? source : 0) * heads + head) + __ldg(dst + row * heads + head);
    }
  };
  by_groups(
      lanes_log2, num_rows,
      [&](int64_t row) {
        const Range edges = edges_of(indptr, row, num_edges);
        if (edges.end - edges.begin > kLongEdges) return true;
        add(row, edges, threadIdx.x & (lanes - 1), lanes);
        return false;
      },
      [&](int64_t row) { add(row, edges_of(indptr, row, num_edges), threadIdx.x, kThreads); });
  assert(valid && "gnnbench edges: an index is outside the block");
}

// Reduces one value per thread. Every thread gets the result.
template <class Real, class Combine>
__device__ Real of_block(Real value, Combine combine) {
  __shared__ Real values[kThreads];
  values[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
    }
  }
  __syncthreads();
  const Real found = values[0];
  __syncthreads();
  return found;
}

template <class Real>
struct Larger {
  __device__ Real operator()(Real a, Real b) const { return a > b ? a : b; }
};
template <class Real>
struct Added {
  __device__ Real operator()(Real a, Real b) const { return a + b; }
};
// The reduction of a single thread: its own value.
struct Alone {
  template <class Real, class Combine>
  __device__ Real operator()(Real value, Combine) const {
    return value;
  }
};
struct Together {
  template <class Real, class Combine>
  __device__ Real operator()(Real value, Combine combine) const {
    return of_block(value, combine);
  }
};

// Values first, first + step, ... below last of one row and head.
template <class Real, class Over>
__device__ __forceinline__ void softmax(const Real* __restrict__ scores, int64_t first,
                                        int64_t last, int64_t step, Over over,
                                        Real* __restrict__ out) {
  Real top = -std::numeric_limits<Real>::infinity();
#pragma unroll 4
  for (int64_t i = first; i < last; i += step) {
    const Real score = __ldg(scores + i);
    top = score > top ? score : top;
  }
  top = over(top, Larger<Real>());
  Real sum = 0;
#pragma unroll 4
  for (int64_t i = first; i < last; i += step) sum += exp(__ldg(scores + i) - top);
  sum = over(sum, Added<Real>());
#pragma unroll 4
  for (int64_t i = first; i < last; i += step) out[i] = exp(__ldg(scores + i) - top) / sum;
}

template <class Real, class Over>
__device__ __forceinline__ void softmax_backward(const Real* __restrict__ softmax,
                                                 const Real* __restrict__ grad, int64_t first,
                                                 int64_t last, int64_t step, Over over,
                                                 Real* __restrict__ out) {
  Real dot = 0;
#pragma unroll 4
  for (int64_t i = first; i < last; i += step) dot += __ldg(softmax + i) * __ldg(grad + i);
  dot = over(dot, Added<Real>());
#pragma unroll 4
  for (int64_t i = first; i < last; i += step)
    out[i] = __ldg(softmax + i) * (__ldg(grad + i) - dot);
}

// One thread per row and head. `values`: scores, or, with `grad`, softmax.
template <class Real>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(const int32_t* __restrict__ indptr, const Real* __restrict__ values,
                   const Real* __restrict__ grad, int64_t num_edges, int64_t num_rows,
                   int64_t heads, Real* __restrict__ out) {
  const auto work = [&](int64_t item, Range edges, int64_t thread, int64_t threads, auto over) {
    const int64_t first = (edges.begin + thread) * heads + item % heads;
    const int64_t last = edges.end * heads, step = threads * heads;
    if (grad == nullptr) {
      softmax(values, first, last, step, over, out);
    } else {
      softmax_backward(values, grad, first, last, step, over, out);
    }
  };
  by_groups(
      0, num_rows * heads,
      [&](int64_t item) {
        const Range edges = edges_of(indptr, item / heads, num_edges);
        if (edges.end - edges.begin > kLongEdges) return true;
        work(item, edges, 0, 1, Alone());
        return false;
      },
      [&](int64_t item) {
        work(item, edges_of(indptr, item / heads, num_edges), threadIdx.x, kThreads, Together());
      });
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    edge_dots_kernel(const int32_t* __restrict__ indptr, const int32_t* __restrict__ indices,
                     const T* __restrict__ rows, const T* __restrict__ x, int64_t num_edges,
                     int64_t num_src, int64_t num_rows, int64_t heads, int64_t packs,
                     int lanes_log2, Sum<T>* __restrict__ out) {
  using Real = Sum<T>;
  constexpr int kEdges = 4;
  const int lanes = 1 << lanes_log2;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int within = static_cast<int>(threadIdx.x) & 31;
  const unsigned mask = lanes == 32 ? 0xffffffffu : ((1u << lanes) - 1) << (within - lane);
  bool valid = true;
  const auto dots = [&](int64_t item, Range edges, int64_t number, int64_t step) {
    const int64_t head = item % heads;
    for (int64_t e = edges.begin + number * kEdges; e < edges.end; e += step * kEdges) {
      int64_t at[kEdges];
      Real sum[kEdges] = {};
#pragma unroll
      for (int k = 0; k < kEdges; ++k) {
        const int32_t source = e + k < edges.end ? __ldg(indices + e + k) : 0;
        const bool inside = source >= 0 && source < num_src;
        valid = valid && inside;
        at[k] = ((inside ? source : 0) * heads + head) * packs;
      }
      for (int64_t p = lane; p < packs; p += lanes) {
        const auto own = load_pack<T, kWidth>(rows, item * packs + p);
        Elements<T, kWidth> theirs[kEdges];
#pragma unroll
        for (int k = 0; k < kEdges; ++k) {
          if (e + k < edges.end) theirs[k] = load_pack<T, kWidth>(x, at[k] + p);
        }
#pragma unroll
        for (int k = 0; k < kEdges; ++k) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            sum[k] += to_sum(own.value[i]) * to_sum(theirs[k].value[i]);
          }
        }
      }
      for (int other = lanes / 2; other > 0; other /= 2) {
#pragma unroll
        for (int k = 0; k < kEdges; ++k) sum[k] += __shfl_xor_sync(mask, sum[k], other, lanes);
      }
      if (lane != 0) continue;
#pragma unroll
      for (int k = 0; k < kEdges; ++k) {
        if (e + k < edges.end) out[(e + k) * heads + head] = sum[k];
      }
    }
  };
  by_groups(
      lanes_log2, num_rows * heads,
      [&](int64_t item) {
        const Range edges = edges_of(indptr, item / heads, num_edges);
        if (edges.end - edges.begin > kLongEdges) return true;
        dots(item, edges, 0, 1);
        return false;
      },
      [&](int64_t item) {
        dots(item, edges_of(indptr, item / heads, num_edges), threadIdx.x >> lanes_log2,
             kThreads >> lanes_log2);
      });
  assert(valid && "gnnbench edges: an index is outside the block");
}

int lanes_for(int64_t values) {
  int log2 = 0;
  while (log2 < 5 && (int64_t{1} << log2) < values) ++log2;
  return log2;
}

template <class T, int kWidth>
void run_dots(Launch launch, const int32_t* indptr, const int32_t* indices, const T* rows,
              const T* x, int64_t num_edges, int64_t num_src, int64_t num_rows, int64_t heads,
              int64_t width, Sum<T>* out) {
  const int64_t packs = width / kWidth;
  const int lanes_log2 = lanes_for(packs);
  edge_dots_kernel<T, kWidth>
      <<<blocks_for(num_rows * heads << lanes_log2, kThreads), kThreads, 0, launch.stream>>>(
          indptr, indices, rows, x, num_edges, num_src, num_rows, heads, packs, lanes_log2, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "edge_dots_kernel");
}

template <class Real>
void run_softmax(Launch launch, const int32_t* indptr, const Real* values, const Real* grad,
                 int64_t num_edges, int64_t num_rows, int64_t heads, Real* out) {
  if (num_rows == 0 || num_edges == 0 || heads == 0) return;
  softmax_kernel<<<blocks_for(num_rows * heads, kThreads), kThreads, 0, launch.stream>>>(
      indptr, values, grad, num_edges, num_rows, heads, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "softmax_kernel");
}

}  // namespace

template <class Real>
void edge_add(Launch launch, const int32_t* indptr, const int32_t* indices, const Real* src,
              const Real* dst, int64_t num_edges, int64_t num_src, int64_t num_rows, int64_t heads,
              Real* out) {
  if (num_rows == 0 || num_edges == 0 || heads == 0) return;
  const int lanes_log2 = lanes_for(4 * heads);
  edge_add_kernel<<<blocks_for(num_rows << lanes_log2, kThreads), kThreads, 0, launch.stream>>>(
      indptr, indices, src, dst, num_edges, num_src, num_rows, heads, lanes_log2, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "edge_add_kernel");
}

template <class Real>
void edge_softmax(Launch launch, const int32_t* indptr, const Real* scores, int64_t num_edges,
                  int64_t num_rows, int64_t heads, Real* out) {
  const Real* const no_grad = nullptr;
  run_softmax(launch, indptr, scores, no_grad, num_edges, num_rows, heads, out);
}

template <class Real>
void edge_softmax_backward(Launch launch, const int32_t* indptr, const Real* softmax,
                           const Real* grad, int64_t num_edges, int64_t num_rows, int64_t heads,
                           Real* out) {
  run_softmax(launch, indptr, softmax, grad, num_edges, num_rows, heads, out);
}

template <class T>
void edge_dots(Launch launch, const int32_t* indptr, const int32_t* indices, const T* rows,
               const T* x, int64_t num_edges, int64_t num_src, int64_t num_rows, int64_t heads,
               int64_t width, Sum<T>* out) {
  if (num_rows == 0 || num_edges == 0 || heads == 0) return;
  if (width > 0 && pack_bytes<T>(rows, x, width) == 16) {
    run_dots<T, 16 / sizeof(T)>(launch, indptr, indices, rows, x, num_edges, num_src, num_rows,
                                heads, width, out);
  } else {
    run_dots<T, 1>(launch, indptr, indices, rows, x, num_edges, num_src, num_rows, heads, width,
                   out);
  }
}

template void edge_add<float>(Launch, const int32_t*, const int32_t*, const float*, const float*,
                              int64_t, int64_t, int64_t, int64_t, float*);
template void edge_add<double>(Launch, const int32_t*, const int32_t*, const double*, const double*,
                               int64_t, int64_t, int64_t, int64_t, double*);
template void edge_softmax<float>(Launch, const int32_t*, const float*, int64_t, int64_t, int64_t,
                                  float*);
template void edge_softmax<double>(Launch, const int32_t*, const double*, int64_t, int64_t, int64_t,
                                   double*);
template void edge_softmax_backward<float>(Launch, const int32_t*, const float*, const float*,
                                           int64_t, int64_t, int64_t, float*);
template void edge_softmax_backward<double>(Launch, const int32_t*, const double*, const double*,
                                            int64_t, int64_t, int64_t, double*);

template <class T>
using Dots = void(Launch, const int32_t*, const int32_t*, const T*, const T*, int64_t, int64_t,
                  int64_t, int64_t, int64_t, Sum<T>*);
template Dots<float> edge_dots<float>;
template Dots<double> edge_dots<double>;
template Dots<__half> edge_dots<__half>;
template Dots<__nv_bfloat16> edge_dots<__nv_bfloat16>;

}  // namespace gnnbench::cuda
