#include "cuda/aggregate/aggregate.h"
#include "cuda/aggregate/pack.cuh"
#include "cuda/common/device_assert.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBatch = 4;

// A row's lanes are the power of two that covers its packs, at most a warp. A lane processes
// columns and adds the terms in stored order, so that sums do not depend on the schedule.
template <class T, int kWidth, bool kWeighted>
__global__ void __launch_bounds__(kThreads)
    aggregate_kernel(const int32_t* __restrict__ indptr, const int32_t* __restrict__ indices,
                     const T* __restrict__ x, const Sum<T>* __restrict__ weights, int64_t num_edges,
                     int64_t num_src, int64_t num_dst, int64_t packs, int lanes_log2,
                     Aggregate mode, T* __restrict__ out) {
  using Real = Sum<T>;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = thread >> lanes_log2;
  if (row >= num_dst) return;
  const int32_t begin = indptr[row], end = indptr[row + 1];
  assert(begin >= 0 && begin <= end && end <= num_edges && "gnnbench aggregate: indptr is broken");
  const int lanes = 1 << lanes_log2;
  bool valid = true;
  // A source outside the block is replaced by source 0 and clears `valid`, because an assert in the
  // loop costs registers.
  const auto source_at = [&](int64_t e) {
    const int32_t source = indices[e];
    const bool inside = source >= 0 && source < num_src;
    valid = valid && inside;
    return inside ? source : 0;
  };
  const auto weight_at = [&](int64_t e) { return kWeighted ? weights[e] : Real(1); };
  for (int64_t p = thread & (lanes - 1); p < packs; p += lanes) {
    Real sum[kWidth] = {}, total = 0;
    const auto add = [&](const Elements<T, kWidth>& term, Real weight) {
      total += weight;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] += weight * to_sum(term.value[i]);
    };
    int64_t e = begin;
    for (; e + kBatch <= end; e += kBatch) {
      Real weight[kBatch];
      Elements<T, kWidth> term[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        weight[k] = weight_at(e + k);
        term[k] = load_pack<T, kWidth>(x, source_at(e + k) * packs + p);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) add(term[k], weight[k]);
    }
    for (; e < end; ++e) add(load_pack<T, kWidth>(x, source_at(e) * packs + p), weight_at(e));
    if (!kWeighted) total = static_cast<Real>(end - begin);
    Real divisor = 1;
    if (mode == Aggregate::kGcn) {
      const auto self = load_pack<T, kWidth>(x, row * packs + p);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] += to_sum(self.value[i]);
      divisor = total + Real(1);
    } else if (mode == Aggregate::kMean && end > begin) {
      divisor = total;
    }
    Elements<T, kWidth> rounded;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) rounded.value[i] = from_sum<T>(sum[i] / divisor);
    reinterpret_cast<typename Elements<T, kWidth>::Word*>(out)[row * packs + p] = rounded.word;
  }
  assert(valid && "gnnbench aggregate: an index is outside the block");
}

template <class T, int kWidth>
void run(Launch launch, const int32_t* indptr, const int32_t* indices, const T* x,
         const Sum<T>* weights, int64_t num_edges, int64_t num_src, int64_t num_dst, int64_t dim,
         Aggregate mode, T* out) {
  const int64_t packs = dim / kWidth;
  int lanes_log2 = 0;
  while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < packs) ++lanes_log2;
  const auto kernel =
      weights != nullptr ? aggregate_kernel<T, kWidth, true> : aggregate_kernel<T, kWidth, false>;
  kernel<<<blocks_for(num_dst << lanes_log2, kThreads), kThreads, 0, launch.stream>>>(
      indptr, indices, x, weights, num_edges, num_src, num_dst, packs, lanes_log2, mode, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "aggregate_kernel");
}

}  // namespace

template <class T>
void aggregate(Launch launch, const int32_t* indptr, const int32_t* indices, const T* x,
               const Sum<T>* weights, int64_t num_edges, int64_t num_src, int64_t num_dst,
               int64_t dim, Aggregate mode, T* out) {
  if (num_dst == 0 || dim == 0) return;
  if (pack_bytes<T>(x, out, dim) == 16) {
    run<T, 16 / sizeof(T)>(launch, indptr, indices, x, weights, num_edges, num_src, num_dst, dim,
                           mode, out);
  } else {
    run<T, 1>(launch, indptr, indices, x, weights, num_edges, num_src, num_dst, dim, mode, out);
  }
}

template void aggregate<float>(Launch, const int32_t*, const int32_t*, const float*, const float*,
                               int64_t, int64_t, int64_t, int64_t, Aggregate, float*);
template void aggregate<double>(Launch, const int32_t*, const int32_t*, const double*,
                                const double*, int64_t, int64_t, int64_t, int64_t, Aggregate,
                                double*);
template void aggregate<__half>(Launch, const int32_t*, const int32_t*, const __half*, const float*,
                                int64_t, int64_t, int64_t, int64_t, Aggregate, __half*);
template void aggregate<__nv_bfloat16>(Launch, const int32_t*, const int32_t*, const __nv_bfloat16*,
                                       const float*, int64_t, int64_t, int64_t, int64_t, Aggregate,
                                       __nv_bfloat16*);

}  // namespace gnnbench::cuda
