#include "cuda/aggregate/row_sum.cuh"

namespace gnnbench::cuda {
namespace {

template <class Real, int kWidth>
__global__ void __launch_bounds__(kRowSumThreads)
    aggregate_kernel(const int32_t* __restrict__ indptr, const int32_t* __restrict__ indices,
                     const Pack<Real, kWidth>* __restrict__ x, int64_t num_edges, int64_t num_src,
                     int64_t num_dst, int64_t packs, int lanes_log2, Aggregate mode,
                     Pack<Real, kWidth>* __restrict__ out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kRowSumThreads + threadIdx.x;
  const int64_t row = thread >> lanes_log2;
  if (row >= num_dst) return;
  const int32_t begin = indptr[row], end = indptr[row + 1];
  assert(begin >= 0 && begin <= end && end <= num_edges && "gnnbench aggregate: indptr is broken");
  const int lanes = 1 << lanes_log2;
  bool sound = true;
  const Real degree = static_cast<Real>(end - begin);
  for (int64_t p = thread & (lanes - 1); p < packs; p += lanes) {
    Pack<Real, kWidth> acc = {};
    add_rows(
        acc, x, packs, p, indices, begin, end, num_src, [](int32_t) { return Real(1); }, sound);
    if (mode == Aggregate::kMean && end > begin) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) acc.value[i] /= degree;
    } else if (mode == Aggregate::kGcn) {
      const Pack<Real, kWidth> self = x[row * packs + p];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        acc.value[i] = (acc.value[i] + self.value[i]) / (degree + Real(1));
      }
    }
    out[row * packs + p] = acc;
  }
  assert(sound && "gnnbench aggregate: an index is outside the block");
}

template <class Real, int kWidth>
void run(Launch launch, const int32_t* indptr, const int32_t* indices, const Real* x,
         int64_t num_edges, int64_t num_src, int64_t num_dst, int64_t dim, Aggregate mode,
         Real* out) {
  using P = Pack<Real, kWidth>;
  const int64_t packs = dim / kWidth;
  const int lanes_log2 = row_sum_lanes_log2(packs);
  aggregate_kernel<Real, kWidth>
      <<<blocks_for(num_dst << lanes_log2, kRowSumThreads), kRowSumThreads, 0, launch.stream>>>(
          indptr, indices, reinterpret_cast<const P*>(x), num_edges, num_src, num_dst, packs,
          lanes_log2, mode, reinterpret_cast<P*>(out));
  GNNBENCH_CUDA_LAUNCHED(launch, "aggregate_kernel");
}

}  // namespace

template <class Real>
void aggregate(Launch launch, const int32_t* indptr, const int32_t* indices, const Real* x,
               int64_t num_edges, int64_t num_src, int64_t num_dst, int64_t dim, Aggregate mode,
               Real* out) {
  if (num_dst == 0 || dim == 0) return;
  if (packs_of_16_bytes<Real>(x, out, dim)) {
    run<Real, 16 / sizeof(Real)>(launch, indptr, indices, x, num_edges, num_src, num_dst, dim, mode,
                                 out);
  } else {
    run<Real, 1>(launch, indptr, indices, x, num_edges, num_src, num_dst, dim, mode, out);
  }
}

template void aggregate<float>(Launch, const int32_t*, const int32_t*, const float*, int64_t,
                               int64_t, int64_t, int64_t, Aggregate, float*);
template void aggregate<double>(Launch, const int32_t*, const int32_t*, const double*, int64_t,
                                int64_t, int64_t, int64_t, Aggregate, double*);

}  // namespace gnnbench::cuda
