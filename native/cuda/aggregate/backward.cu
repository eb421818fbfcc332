#include <cub/device/device_radix_sort.cuh>

#include "cuda/aggregate/row_sum.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kExpandLanes = 8;
constexpr int kLongThreads = 1024;
constexpr int64_t kLongBlocks = 256;

// rows[e] = the destination of edge e; weights[v] = what each edge of destination v weighs.
template <class Real>
__global__ void expand_kernel(const int32_t* indptr, const int32_t* indices, int64_t num_edges,
                              int64_t num_src, int64_t num_dst, Aggregate mode, int32_t* rows,
                              Real* weights) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = thread / kExpandLanes;
  if (row >= num_dst) return;
  const int32_t begin = indptr[row], end = indptr[row + 1];
  assert(begin >= 0 && begin <= end && end <= num_edges && "gnnbench aggregate: indptr is broken");
  // Every edge belongs to a row: `rows` must be written in full before the sort.
  assert((row > 0 || begin == 0) && (row < num_dst - 1 || end == num_edges) &&
         "gnnbench aggregate: indptr does not cover indices");
  if (thread % kExpandLanes == 0) {
    const int32_t degree = end - begin;
    weights[row] = mode == Aggregate::kSum   ? Real(1)
                   : mode == Aggregate::kGcn ? Real(1) / static_cast<Real>(degree + 1)
                                             : Real(1) / static_cast<Real>(degree);
  }
  for (int64_t e = begin + thread % kExpandLanes; e < end; e += kExpandLanes) {
    assert(indices[e] >= 0 && indices[e] < num_src &&
           "gnnbench aggregate: an index is outside the block");
    rows[e] = static_cast<int32_t>(row);
  }
}

// offsets[v] = the number of sorted sources below v, for v in [0, num_src]. Empties the list of
// long rows.
__global__ void offsets_kernel(const int32_t* sources, int32_t num_edges, int64_t num_src,
                               int32_t* offsets, int32_t* long_rows) {
  const int64_t v = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (v > num_src) return;
  if (v == 0) long_rows[0] = 0;
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
struct Transposed {
  const int32_t* offsets;
  const int32_t* dsts;
  const Real* weights;
  const Pack<Real, kWidth>* grad;
  int64_t num_src, num_dst, packs;
  bool with_self;
  Pack<Real, kWidth>* out;

  // The sum of edges [begin, end) of a row, columns of pack p.
  __device__ __forceinline__ Pack<Real, kWidth> sum(int64_t p, int32_t begin, int32_t end,
                                                    bool& sound) const {
    Pack<Real, kWidth> acc = {};
    const Real* const w = weights;
    add_rows(
        acc, grad, packs, p, dsts, begin, end, num_dst, [w](int32_t dst) { return w[dst]; }, sound);
    return acc;
  }

  // Adds the row's own term where there is one, and stores.
  __device__ __forceinline__ void store(int64_t row, int64_t p, Pack<Real, kWidth> acc) const {
    if (with_self && row < num_dst) {
      const Real w = weights[row];
      const Pack<Real, kWidth> self = grad[row * packs + p];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) acc.value[i] += w * self.value[i];
    }
    out[row * packs + p] = acc;
  }
};

// Rows of at most kLongRow edges; the others are put on the list, in any order.
template <class Real, int kWidth>
__global__ void __launch_bounds__(kRowSumThreads)
    short_rows_kernel(Transposed<Real, kWidth> t, int lanes_log2, int32_t* long_rows) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kRowSumThreads + threadIdx.x;
  const int64_t row = thread >> lanes_log2;
  if (row >= t.num_src) return;
  const int lanes = 1 << lanes_log2;
  const int32_t begin = t.offsets[row], end = t.offsets[row + 1];
  if (end - begin > kLongRow) {
    if ((thread & (lanes - 1)) == 0) {
      long_rows[1 + atomicAdd(&long_rows[0], 1)] = static_cast<int32_t>(row);
    }
    return;
  }
  bool sound = true;
  for (int64_t p = thread & (lanes - 1); p < t.packs; p += lanes) {
    t.store(row, p, t.sum(p, begin, end, sound));
  }
  assert(sound && "gnnbench aggregate: an index is outside the block");
}

// A block a row: each group of lanes sums an equal part of the edges, then the parts are added in
// order.
template <class Real, int kWidth>
__global__ void __launch_bounds__(kLongThreads)
    long_rows_kernel(Transposed<Real, kWidth> t, int lanes_log2, int64_t blocks,
                     const int32_t* long_rows) {
  __shared__ Pack<Real, kWidth> parts[kLongThreads];
  const int lanes = 1 << lanes_log2;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int groups = kLongThreads >> lanes_log2;
  const int group = static_cast<int>(threadIdx.x) >> lanes_log2;
  bool sound = true;
  for (int64_t i = blockIdx.x; i < long_rows[0]; i += blocks) {
    const int64_t row = long_rows[1 + i];
    const int32_t first = t.offsets[row];
    const int64_t edges = t.offsets[row + 1] - first;
    const auto begin = static_cast<int32_t>(first + edges * group / groups);
    const auto end = static_cast<int32_t>(first + edges * (group + 1) / groups);
    for (int64_t low = 0; low < t.packs; low += lanes) {
      const int64_t p = low + lane;
      if (p < t.packs) parts[threadIdx.x] = t.sum(p, begin, end, sound);
      __syncthreads();
      if (group == 0 && p < t.packs) {
        Pack<Real, kWidth> acc = parts[lane];
        for (int g = 1; g < groups; ++g) {
          const Pack<Real, kWidth> part = parts[g * lanes + lane];
#pragma unroll
          for (int k = 0; k < kWidth; ++k) acc.value[k] += part.value[k];
        }
        t.store(row, p, acc);
      }
      __syncthreads();
    }
  }
  assert(sound && "gnnbench aggregate: an index is outside the block");
}

template <class Real, int kWidth>
void run(Launch launch, const Real* grad, int64_t num_edges, int64_t num_src, int64_t num_dst,
         int64_t dim, Aggregate mode, const TransposeScratch& scratch, Real* out) {
  using P = Pack<Real, kWidth>;
  const int64_t packs = dim / kWidth;
  const int lanes_log2 = row_sum_lanes_log2(packs);
  const Transposed<Real, kWidth> t{scratch.offsets,
                                   scratch.sorted,
                                   static_cast<const Real*>(scratch.weights),
                                   reinterpret_cast<const P*>(grad),
                                   num_src,
                                   num_dst,
                                   packs,
                                   mode == Aggregate::kGcn,
                                   reinterpret_cast<P*>(out)};
  short_rows_kernel<Real, kWidth>
      <<<blocks_for(num_src << lanes_log2, kRowSumThreads), kRowSumThreads, 0, launch.stream>>>(
          t, lanes_log2, scratch.long_rows);
  GNNBENCH_CUDA_LAUNCHED(launch, "short_rows_kernel");
  const int64_t most = num_edges / kLongRow;  // long rows
  if (most == 0) return;
  const int64_t blocks = most < kLongBlocks ? most : kLongBlocks;
  long_rows_kernel<Real, kWidth>
      <<<blocks, kLongThreads, 0, launch.stream>>>(t, lanes_log2, blocks, scratch.long_rows);
  GNNBENCH_CUDA_LAUNCHED(launch, "long_rows_kernel");
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
        indptr, indices, num_edges, num_src, num_dst, mode, scratch.rows,
        static_cast<Real*>(scratch.weights));
    GNNBENCH_CUDA_LAUNCHED(launch, "expand_kernel");
  }
  if (num_edges > 0) {
    GNNBENCH_CUDA_CALL(launch, sort_by_source(scratch.cub, scratch.cub_bytes, indices, scratch,
                                              num_edges, num_src, launch.stream));
  }
  offsets_kernel<<<blocks_for(num_src + 1, kThreads), kThreads, 0, launch.stream>>>(
      scratch.sources, static_cast<int32_t>(num_edges), num_src, scratch.offsets,
      scratch.long_rows);
  GNNBENCH_CUDA_LAUNCHED(launch, "offsets_kernel");
  if (packs_of_16_bytes<Real>(grad, out, dim)) {
    run<Real, 16 / sizeof(Real)>(launch, grad, num_edges, num_src, num_dst, dim, mode, scratch,
                                 out);
  } else {
    run<Real, 1>(launch, grad, num_edges, num_src, num_dst, dim, mode, scratch, out);
  }
}

template void aggregate_backward<float>(Launch, const int32_t*, const int32_t*, const float*,
                                        int64_t, int64_t, int64_t, int64_t, Aggregate,
                                        TransposeScratch, float*);
template void aggregate_backward<double>(Launch, const int32_t*, const int32_t*, const double*,
                                         int64_t, int64_t, int64_t, int64_t, Aggregate,
                                         TransposeScratch, double*);

}  // namespace gnnbench::cuda
