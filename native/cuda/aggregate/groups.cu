#include "cuda/aggregate/groups.h"
#include "cuda/common/device_assert.h"
#include "cuda/common/scan.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    count_groups_kernel(const int32_t* __restrict__ indptr, int64_t num_rows, int64_t group,
                        int32_t* __restrict__ counts) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row > num_rows) return;
  if (row == num_rows) {
    counts[row] = 0;
    return;
  }
  const int32_t begin = indptr[row], end = indptr[row + 1];
  assert(begin >= 0 && begin <= end && (row > 0 || begin == 0) &&
         "gnnbench groups: indptr is broken");
  counts[row] = static_cast<int32_t>((end - begin + group - 1) / group);
}

__global__ void __launch_bounds__(kThreads)
    write_groups_kernel(const int32_t* __restrict__ indptr, const int32_t* __restrict__ offsets,
                        int64_t num_rows, int64_t group, int32_t* __restrict__ starts,
                        int32_t* __restrict__ rows) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row > num_rows) return;
  if (row == num_rows) {
    starts[offsets[row]] = indptr[row];
    return;
  }
  const int32_t first = offsets[row], last = offsets[row + 1];
  for (int32_t g = first; g < last; ++g) {
    starts[g] = static_cast<int32_t>(indptr[row] + (g - first) * group);
    rows[g] = static_cast<int32_t>(row);
  }
}

// blockIdx.y selects kGroupColumns columns.
template <class Real>
__global__ void __launch_bounds__(32 * kGroupWarps)
    sum_groups_kernel(const int32_t* __restrict__ starts, const int32_t* __restrict__ rows,
                      int64_t num_groups, const int32_t* __restrict__ indices, int64_t num_edges,
                      const Real* __restrict__ x, int64_t num_src, int64_t dim, int64_t num_rows,
                      int dim_workers, Real* __restrict__ out) {
  extern __shared__ double shared[];
  __shared__ int32_t columns_of_warps[kGroupWarps][32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t g = static_cast<int64_t>(blockIdx.x) * kGroupWarps + warp;
  if (g >= num_groups) return;
  const int64_t low = static_cast<int64_t>(blockIdx.y) * kGroupColumns;
  const int width = static_cast<int>(dim - low < kGroupColumns ? dim - low : kGroupColumns);
  Real* const sums = reinterpret_cast<Real*>(shared) +
                     warp * static_cast<int>(dim < kGroupColumns ? dim : kGroupColumns);
  int32_t* const columns = columns_of_warps[warp];
  const int32_t begin = __ldg(starts + g), end = __ldg(starts + g + 1);
  const int64_t row = __ldg(rows + g);
  assert(begin >= 0 && begin <= end && end <= num_edges && row >= 0 && row < num_rows &&
         "gnnbench groups: starts or rows are broken");
  bool valid = true;
  for (int64_t first = begin; first < end; first += 32) {
    const int n = end - first < 32 ? static_cast<int>(end - first) : 32;
    if (lane < n) {
      const int32_t column = __ldg(indices + first + lane);
      const bool inside = column >= 0 && column < num_src;
      valid = valid && inside;
      columns[lane] = inside ? column : 0;
    }
    __syncwarp();
    if (lane < dim_workers) {
      for (int k = 0; k < n; ++k) {
        const Real* const from = x + columns[k] * dim + low;
        for (int d = lane; d < width; d += dim_workers) {
          const Real term = __ldg(from + d);
          sums[d] = first == begin && k == 0 ? term : sums[d] + term;
        }
      }
    }
    __syncwarp();
  }
  if (lane < dim_workers && begin < end) {
    for (int d = lane; d < width; d += dim_workers) atomicAdd(out + row * dim + low + d, sums[d]);
  }
  assert(valid && "gnnbench groups: an index is outside the block");
}

}  // namespace

size_t count_groups_scan_bytes(Launch launch, int64_t num_rows) {
  return scan_scratch_bytes<int32_t>(launch, num_rows + 1);
}

void count_groups(Launch launch, const int32_t* indptr, int64_t num_rows, int64_t group, void* scan,
                  size_t scan_bytes, int32_t* offsets) {
  count_groups_kernel<<<blocks_for(num_rows + 1, kThreads), kThreads, 0, launch.stream>>>(
      indptr, num_rows, group, offsets);
  GNNBENCH_CUDA_LAUNCHED(launch, "count_groups_kernel");
  exclusive_scan<int32_t>(launch, scan, scan_bytes, offsets, num_rows + 1);
}

void write_groups(Launch launch, const int32_t* indptr, const int32_t* offsets, int64_t num_rows,
                  int64_t group, int32_t* starts, int32_t* rows) {
  write_groups_kernel<<<blocks_for(num_rows + 1, kThreads), kThreads, 0, launch.stream>>>(
      indptr, offsets, num_rows, group, starts, rows);
  GNNBENCH_CUDA_LAUNCHED(launch, "write_groups_kernel");
}

template <class Real>
void sum_groups(Launch launch, const int32_t* starts, const int32_t* rows, int64_t num_groups,
                const int32_t* indices, int64_t num_edges, const Real* x, int64_t num_src,
                int64_t dim, int64_t num_rows, int dim_workers, Real* out) {
  const auto bytes = static_cast<size_t>(num_rows * dim) * sizeof(Real);
  if (bytes == 0) return;
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(out, 0, bytes, launch.stream));
  if (num_groups == 0) return;
  const dim3 grid(static_cast<unsigned>(blocks_for(num_groups, kGroupWarps)),
                  static_cast<unsigned>(blocks_for(dim, kGroupColumns)));
  const size_t shared_bytes =
      kGroupWarps * sizeof(Real) * static_cast<size_t>(dim < kGroupColumns ? dim : kGroupColumns);
  sum_groups_kernel<<<grid, 32 * kGroupWarps, shared_bytes, launch.stream>>>(
      starts, rows, num_groups, indices, num_edges, x, num_src, dim, num_rows, dim_workers, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "sum_groups_kernel");
}

template void sum_groups<float>(Launch, const int32_t*, const int32_t*, int64_t, const int32_t*,
                                int64_t, const float*, int64_t, int64_t, int64_t, int, float*);
template void sum_groups<double>(Launch, const int32_t*, const int32_t*, int64_t, const int32_t*,
                                 int64_t, const double*, int64_t, int64_t, int64_t, int, double*);

}  // namespace gnnbench::cuda
