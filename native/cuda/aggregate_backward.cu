#include <cub/device/device_radix_sort.cuh>

#include "cuda/row_sum.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kExpandLanes = 8;

// rows[e] = the destination of edge e.
__global__ void expand_kernel(const int32_t* indptr, const int32_t* indices, int64_t num_edges,
                              int64_t num_src, int64_t num_dst, int32_t* rows) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = thread / kExpandLanes;
  if (row >= num_dst) return;
  const int32_t begin = indptr[row], end = indptr[row + 1];
  assert(begin >= 0 && begin <= end && end <= num_edges && "gnnbench aggregate: indptr is broken");
  // Every edge belongs to a row: `rows` must be written in full before the sort.
  assert((row > 0 || begin == 0) && (row < num_dst - 1 || end == num_edges) &&
         "gnnbench aggregate: indptr does not cover indices");
  for (int64_t e = begin + thread % kExpandLanes; e < end; e += kExpandLanes) {
    assert(indices[e] >= 0 && indices[e] < num_src &&
           "gnnbench aggregate: an index is outside the block");
    rows[e] = static_cast<int32_t>(row);
  }
}

// offsets[v] = the number of sorted sources below v, for v in [0, num_src].
__global__ void offsets_kernel(const int32_t* sources, int32_t num_edges, int64_t num_src,
                               int32_t* offsets) {
  const int64_t v = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (v > num_src) return;
  int32_t low = 0, count = num_edges;
  while (count > 0) {
    const int32_t half = count / 2;
    if (sources[low + half] < v) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  offsets[v] = low;
}

template <class Real, int kWidth>
__global__ void __launch_bounds__(kRowSumThreads)
    transposed_kernel(const int32_t* __restrict__ offsets, const int32_t* __restrict__ dsts,
                      const int32_t* __restrict__ indptr,
                      const Pack<Real, kWidth>* __restrict__ grad, int64_t num_src, int64_t num_dst,
                      int64_t packs, int lanes_log2, Aggregate mode,
                      Pack<Real, kWidth>* __restrict__ out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kRowSumThreads + threadIdx.x;
  const int64_t row = thread >> lanes_log2;
  if (row >= num_src) return;
  const auto weight = [&](int32_t dst) {
    if (mode == Aggregate::kSum) return Real(1);
    const int32_t degree = indptr[dst + 1] - indptr[dst];
    return Real(1) / static_cast<Real>(mode == Aggregate::kGcn ? degree + 1 : degree);
  };
  const int lanes = 1 << lanes_log2;
  bool sound = true;
  for (int64_t p = thread & (lanes - 1); p < packs; p += lanes) {
    Pack<Real, kWidth> acc = {};
    add_rows(acc, grad, packs, p, dsts, offsets[row], offsets[row + 1], num_dst, weight, sound);
    if (mode == Aggregate::kGcn && row < num_dst) {
      const Real w = weight(static_cast<int32_t>(row));
      const Pack<Real, kWidth> self = grad[row * packs + p];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) acc.value[i] += w * self.value[i];
    }
    out[row * packs + p] = acc;
  }
  assert(sound && "gnnbench aggregate: an index is outside the block");
}

template <class Real, int kWidth>
void run(Launch launch, const int32_t* indptr, const Real* grad, int64_t num_src, int64_t num_dst,
         int64_t dim, Aggregate mode, const TransposeScratch& scratch, Real* out) {
  using P = Pack<Real, kWidth>;
  const int64_t packs = dim / kWidth;
  const int lanes_log2 = row_sum_lanes_log2(packs);
  transposed_kernel<Real, kWidth>
      <<<blocks_for(num_src << lanes_log2, kRowSumThreads), kRowSumThreads, 0, launch.stream>>>(
          scratch.offsets, scratch.sorted, indptr, reinterpret_cast<const P*>(grad), num_src,
          num_dst, packs, lanes_log2, mode, reinterpret_cast<P*>(out));
  GNNBENCH_CUDA_LAUNCHED(launch, "transposed_kernel");
}

cudaError_t sort_by_source(void* scratch, size_t& bytes, const int32_t* indices,
                           const TransposeScratch& arrays, int64_t num_edges, int64_t num_src,
                           cudaStream_t stream) {
  int bits = 1;
  while (bits < 31 && (int64_t{1} << bits) < num_src) ++bits;
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, indices, arrays.sources, arrays.rows,
                                         arrays.sorted, static_cast<int>(num_edges), 0, bits,
                                         stream);
}

}  // namespace

size_t aggregate_backward_scratch_bytes(Launch launch, int64_t num_edges, int64_t num_src) {
  size_t bytes = 0;
  GNNBENCH_CUDA_CALL(launch, sort_by_source(nullptr, bytes, nullptr, TransposeScratch{}, num_edges,
                                            num_src, launch.stream));
  return bytes;
}

template <class Real>
void aggregate_backward(Launch launch, const int32_t* indptr, const int32_t* indices,
                        const Real* grad, int64_t num_edges, int64_t num_src, int64_t num_dst,
                        int64_t dim, Aggregate mode, TransposeScratch scratch, Real* out) {
  if (num_src == 0 || dim == 0) return;
  if (num_dst > 0) {
    expand_kernel<<<blocks_for(num_dst * kExpandLanes, kThreads), kThreads, 0, launch.stream>>>(
        indptr, indices, num_edges, num_src, num_dst, scratch.rows);
    GNNBENCH_CUDA_LAUNCHED(launch, "expand_kernel");
  }
  if (num_edges > 0) {
    GNNBENCH_CUDA_CALL(launch, sort_by_source(scratch.cub, scratch.cub_bytes, indices, scratch,
                                              num_edges, num_src, launch.stream));
  }
  offsets_kernel<<<blocks_for(num_src + 1, kThreads), kThreads, 0, launch.stream>>>(
      scratch.sources, static_cast<int32_t>(num_edges), num_src, scratch.offsets);
  GNNBENCH_CUDA_LAUNCHED(launch, "offsets_kernel");
  if (packs_of_16_bytes<Real>(grad, out, dim)) {
    run<Real, 16 / sizeof(Real)>(launch, indptr, grad, num_src, num_dst, dim, mode, scratch, out);
  } else {
    run<Real, 1>(launch, indptr, grad, num_src, num_dst, dim, mode, scratch, out);
  }
}

template void aggregate_backward<float>(Launch, const int32_t*, const int32_t*, const float*,
                                        int64_t, int64_t, int64_t, int64_t, Aggregate,
                                        TransposeScratch, float*);
template void aggregate_backward<double>(Launch, const int32_t*, const int32_t*, const double*,
                                         int64_t, int64_t, int64_t, int64_t, Aggregate,
                                         TransposeScratch, double*);

}  // namespace gnnbench::cuda
