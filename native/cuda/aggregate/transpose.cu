#include "cuda/aggregate/transpose.h"
#include "cuda/common/device_assert.h"
#include "cuda/common/scan.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowLanes = 8;
constexpr int kOrderThreads = 512;

__global__ void __launch_bounds__(kThreads)
    count_kernel(const int32_t* indices, int64_t num_edges, int64_t num_src, int32_t* counts,
                 int32_t* ranks) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e >= num_edges) return;
  const int32_t source = indices[e];
  assert(source >= 0 && source < num_src && "gnnbench transpose: an index is outside the block");
  ranks[e] = atomicAdd(&counts[source], 1);
}

// A few lanes per destination.
__global__ void __launch_bounds__(kThreads)
    place_kernel(const int32_t* indptr, const int32_t* indices, const int32_t* ranks,
                 const int32_t* t_indptr, int64_t num_edges, int64_t num_dst, uint64_t* placed) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = thread / kRowLanes;
  if (row >= num_dst) return;
  const int32_t begin = indptr[row], end = indptr[row + 1];
  // Every edge must belong to a row, because `placed` must be written in full.
  assert(begin >= 0 && begin <= end && end <= num_edges && (row > 0 || begin == 0) &&
         (row < num_dst - 1 || end == num_edges) &&
         "gnnbench transpose: indptr does not cover indices");
  for (int64_t e = begin + thread % kRowLanes; e < end; e += kRowLanes) {
    placed[t_indptr[indices[e]] + ranks[e]] =
        static_cast<uint64_t>(e) << 32 | static_cast<uint64_t>(row);
  }
}

__device__ __forceinline__ int32_t edge_of(uint64_t placed) {
  return static_cast<int32_t>(placed >> 32);
}
__device__ __forceinline__ int32_t dst_of(uint64_t placed) { return static_cast<int32_t>(placed); }

// Sorts tile[0..n), n at most kSortedTile, by all threads of the block (a bitonic network).
__device__ void sort_tile(uint64_t* tile, int n) {
  int padded = 1;
  while (padded < n) padded *= 2;
  for (int i = n + static_cast<int>(threadIdx.x); i < padded; i += kOrderThreads) tile[i] = ~0ull;
  for (int size = 2; size <= padded; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < padded / 2; i += kOrderThreads) {
        const int low = (i & ~(step - 1)) << 1 | (i & (step - 1)), high = low + step;
        const uint64_t a = tile[low], b = tile[high];
        if ((a > b) == ((low & size) == 0)) {
          tile[low] = b;
          tile[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

// Sorts from[0..length) by all threads of the block with `to` as scratch. Sorts tiles in shared
// memory, then merges runs of tiles pairwise. An edge's merged position is its position in its own
// run plus the number of smaller edges in the other run. Returns the array with the result.
__device__ uint64_t* sort_long(uint64_t* tile, uint64_t* from, uint64_t* to, int32_t length) {
  const auto thread = static_cast<int32_t>(threadIdx.x);
  for (int32_t low = 0; low < length; low += kSortedTile) {
    const int32_t n = length - low < kSortedTile ? length - low : kSortedTile;
    for (int32_t k = thread; k < n; k += kOrderThreads) tile[k] = from[low + k];
    sort_tile(tile, n);
    for (int32_t k = thread; k < n; k += kOrderThreads) from[low + k] = tile[k];
    __syncthreads();
  }
  for (int64_t run = kSortedTile; run < length; run *= 2) {
    for (int32_t k = thread; k < length; k += kOrderThreads) {
      const uint64_t own = from[k];
      const int64_t number = k / run, first = number / 2 * 2 * run;
      const int64_t other = number % 2 == 0 ? first + run : first;
      int64_t low = other < length ? other : length;
      const int64_t begun = low;
      int64_t high = other + run < length ? other + run : length;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (from[middle] < own) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      to[first + (k - number * run) + (low - begun)] = own;
    }
    __syncthreads();
    uint64_t* const done = to;
    to = from;
    from = done;
  }
  return from;
}

// One thread per edge, which finds its place by counting the smaller edges of its source. The whole
// block sorts a long row that begins among its edges. Another block may read an edge of that row
// meanwhile. This is harmless: it reads only the source, which is the same for all of them.
__global__ void __launch_bounds__(kOrderThreads)
    order_kernel(const int32_t* indices, const int32_t* t_indptr, int64_t num_edges,
                 uint64_t* placed, uint64_t* merged, int32_t* t_dst, int32_t* t_edge) {
  constexpr int kMostLong = kOrderThreads / kRankedRow + 1;
  __shared__ uint64_t tile[kSortedTile];
  __shared__ int32_t long_rows[kMostLong];
  __shared__ int num_long;
  if (threadIdx.x == 0) num_long = 0;
  __syncthreads();
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kOrderThreads + threadIdx.x;
  bool begins_long = false;
  if (at < num_edges) {
    const uint64_t own = placed[at];
    const int32_t source = indices[edge_of(own)];
    const int32_t begin = t_indptr[source], end = t_indptr[source + 1];
    if (end - begin > kRankedRow) {
      begins_long = at == begin;
      if (begins_long) long_rows[atomicAdd(&num_long, 1)] = source;
    } else {
      int32_t place = begin;
      for (int32_t other = begin; other < end; ++other) place += placed[other] < own;
      t_dst[place] = dst_of(own);
      t_edge[place] = edge_of(own);
    }
  }
  if (!__syncthreads_or(begins_long)) return;
  for (int i = 0; i < num_long; ++i) {
    const int32_t begin = t_indptr[long_rows[i]];
    const int32_t length = t_indptr[long_rows[i] + 1] - begin;
    const uint64_t* const sorted = sort_long(tile, placed + begin, merged + begin, length);
    for (auto k = static_cast<int32_t>(threadIdx.x); k < length; k += kOrderThreads) {
      t_dst[begin + k] = dst_of(sorted[k]);
      t_edge[begin + k] = edge_of(sorted[k]);
    }
    __syncthreads();
  }
}

}  // namespace

size_t transpose_scan_bytes(Launch launch, int64_t num_src) {
  return scan_scratch_bytes<int32_t>(launch, num_src + 1);
}

void transpose(Launch launch, const int32_t* indptr, const int32_t* indices, int64_t num_edges,
               int64_t num_src, int64_t num_dst, TransposeScratch scratch, int32_t* t_indptr,
               int32_t* t_dst, int32_t* t_edge) {
  GNNBENCH_CUDA_CALL(
      launch, cudaMemsetAsync(t_indptr, 0, static_cast<size_t>(num_src + 1) * sizeof(int32_t),
                              launch.stream));
  if (num_edges == 0) return;
  count_kernel<<<blocks_for(num_edges, kThreads), kThreads, 0, launch.stream>>>(
      indices, num_edges, num_src, t_indptr, scratch.ranks);
  GNNBENCH_CUDA_LAUNCHED(launch, "count_kernel");
  exclusive_scan<int32_t>(launch, scratch.scan, scratch.scan_bytes, t_indptr, num_src + 1);
  place_kernel<<<blocks_for(num_dst * kRowLanes, kThreads), kThreads, 0, launch.stream>>>(
      indptr, indices, scratch.ranks, t_indptr, num_edges, num_dst, scratch.placed);
  GNNBENCH_CUDA_LAUNCHED(launch, "place_kernel");
  order_kernel<<<blocks_for(num_edges, kOrderThreads), kOrderThreads, 0, launch.stream>>>(
      indices, t_indptr, num_edges, scratch.placed, scratch.merged, t_dst, t_edge);
  GNNBENCH_CUDA_LAUNCHED(launch, "order_kernel");
}

}  // namespace gnnbench::cuda
