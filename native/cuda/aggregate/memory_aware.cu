#include "cuda/aggregate/memory_aware.h"
#include "cuda/aggregate/row_sums.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kTile = 32;  // edges of a target whose ids and weights are in shared memory at a time

// Number of heads that a team's columns can belong to, and so of weights per edge in shared memory.
__host__ __device__ int64_t heads_of_team(int64_t heads, int64_t dim, int64_t lanes) {
  const int64_t width = dim / heads;
  const int64_t met = (lanes + width - 2) / width + 1;
  return met < heads ? met : heads;
}

// One thread of a team: up to 32 neighbouring columns of one target.
template <class T>
struct TeamThread {
  using Real = Sum<T>;
  const RowSums<T>& a;
  int lanes, lane, heads, head;
  unsigned mask;
  int64_t row, column, first_head;
  bool owns;
  int32_t begin = 0, end = 0;
  Real* partial;  // of this thread
  Real* weights;  // [heads, kTile] of the team
  int32_t* ids;   // [kTile] of the team
  bool valid = true;

  __device__ __forceinline__ TeamThread(const RowSums<T>& sums, double* shared) : a(sums) {
    const int dims = static_cast<int>(blockDim.x), threads = dims * static_cast<int>(blockDim.y);
    const int slot = static_cast<int>(threadIdx.y) * dims + static_cast<int>(threadIdx.x);
    lanes = dims < 32 ? dims : 32;
    lane = slot & (lanes - 1);
    mask = lanes == 32 ? 0xffffffffu : ((1u << lanes) - 1) << ((slot & 31) - lane);
    heads = static_cast<int>(heads_of_team(a.heads, a.dim, lanes));
    const int teams = threads / lanes, team = slot / lanes;
    partial = reinterpret_cast<Real*>(shared) + slot;
    weights = reinterpret_cast<Real*>(shared) + threads + team * heads * kTile;
    ids = reinterpret_cast<int32_t*>(reinterpret_cast<Real*>(shared) + threads +
                                     teams * heads * kTile) +
          team * kTile;
    column = static_cast<int64_t>(blockIdx.y) * dims + threadIdx.x;
    row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const int64_t width = a.dim / a.heads;
    first_head = (column - lane) / width;
    owns = row < a.num_rows && column < a.dim;
    head = owns ? static_cast<int>(column / width - first_head) : 0;
    if (row >= a.num_rows) return;
    begin = __ldg(a.indptr + row);
    end = __ldg(a.indptr + row + 1);
    assert(begin >= 0 && begin <= end && end <= a.num_edges &&
           "gnnbench aggregate: indptr is broken");
  }

  // Copies ids and weights of n edges from `low` on to shared memory. The team's lanes call it.
  __device__ __forceinline__ void stage(int64_t low, int n) {
    __syncwarp(mask);  // the previous tile has been read
    for (int k = lane; k < n; k += lanes) {
      const int32_t found = column_of(a, low + k);
      const bool inside = found >= 0 && found < a.num_columns;
      valid = valid && inside;
      ids[k] = inside ? found : 0;
      const int32_t edge = edge_of(a, low + k);
      if (a.heads == 1) {
        weights[k] = weight_of(a, edge, ids[k]);
        continue;
      }
      for (int h = 0; h < heads && first_head + h < a.heads; ++h) {
        weights[h * kTile + k] =
            __ldg(a.weights + static_cast<int64_t>(edge) * a.heads + first_head + h);
      }
    }
    __syncwarp(mask);
  }

  // Calls f(id, weight) for every edge of the target.
  template <class F>
  __device__ __forceinline__ void for_edges(const F& f) {
    for (int64_t low = begin; low < end; low += kTile) {
      const int n = end - low < kTile ? static_cast<int>(end - low) : kTile;
      stage(low, n);
      const Real* const own = weights + head * kTile;
      if (!owns) continue;
#pragma unroll 4
      for (int k = 0; k < n; ++k) f(static_cast<uint32_t>(ids[k]), own[k]);
    }
  }
};

template <class T>
__global__ void memory_aware_kernel(const RowSums<T> a) {
  using Real = Sum<T>;
  extern __shared__ double shared[];
  TeamThread<T> own(a, shared);
  // Volatile: the paper's sums are in shared memory, but a compiler would keep them in registers.
  volatile Real* const partial = own.partial;
  const auto dim = static_cast<uint32_t>(a.dim);
  const T* const x = a.x + own.column;
  Real total = 0;
  *partial = 0;
  own.for_edges([&](uint32_t id, Real weight) {
    const Real value = to_sum(__ldg(x + uint64_t{id} * dim));
    total += weight;
    *partial = *partial + weight * value;
  });
  if (own.owns) {
    const int64_t at = own.row * a.dim + own.column;
    Real sum = *partial;
    if (with_self(a, own.row)) sum += self_weight(a, own.row) * to_sum(__ldg(a.x + at));
    const int32_t degree = own.end - own.begin;
    if (a.weights == nullptr) total = static_cast<Real>(degree);
    a.out[at] = from_sum<T>(sum * row_factor(a, degree, total));
  }
  assert(own.valid && "gnnbench aggregate: an index is outside the block");
}

template <class T>
__global__ void memory_aware_scatter_kernel(const RowSums<T> a, Sum<T>* out) {
  using Real = Sum<T>;
  extern __shared__ double shared[];
  TeamThread<T> own(a, shared);
  const auto dim = static_cast<uint32_t>(a.dim);
  Real grad = 0;
  if (own.owns) {
    grad = to_sum(__ldg(a.x + own.row * a.dim + own.column));
    if (a.mode != Aggregate::kSum) {
      const Real total =
          a.totals != nullptr ? __ldg(a.totals + own.row) : static_cast<Real>(own.end - own.begin);
      if (a.mode == Aggregate::kGcn) {
        grad /= total + Real(1);
        atomicAdd(out + own.row * a.dim + own.column, grad);
      } else if (own.end > own.begin) {
        grad /= total;
      }
    }
  }
  own.for_edges([&](uint32_t id, Real weight) {
    atomicAdd(out + uint64_t{id} * dim + own.column, weight * grad);
  });
  assert(own.valid && "gnnbench aggregate: an index is outside the block");
}

template <class T>
dim3 grid_of(const RowSums<T>& sums, int targets, int dims) {
  return dim3(static_cast<unsigned>(blocks_for(sums.num_rows, targets)),
              static_cast<unsigned>(blocks_for(sums.dim, dims)));
}

template <class T>
size_t shared_bytes(const RowSums<T>& sums, int targets, int dims) {
  return static_cast<size_t>(
      memory_aware_shared_bytes(sizeof(Sum<T>), sums.heads, sums.dim, targets, dims));
}

}  // namespace

int64_t memory_aware_shared_bytes(int64_t real_bytes, int64_t heads, int64_t dim, int targets,
                                  int dims) {
  const int64_t threads = int64_t{targets} * dims, lanes = dims < 32 ? dims : 32;
  const int64_t weights = kTile * heads_of_team(heads, dim, lanes);
  return real_bytes * threads + threads / lanes * (real_bytes * weights + 4 * kTile);
}

template <class T>
void memory_aware(Launch launch, const RowSums<T>& sums, int targets, int dims) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  const dim3 grid = grid_of(sums, targets, dims);
  const dim3 block(static_cast<unsigned>(dims), static_cast<unsigned>(targets));
  const size_t bytes = shared_bytes(sums, targets, dims);
  memory_aware_kernel<T><<<grid, block, bytes, launch.stream>>>(sums);
  GNNBENCH_CUDA_LAUNCHED(launch, "memory_aware_kernel");
}

template <class T>
void memory_aware_scatter(Launch launch, const RowSums<T>& sums, Sum<T>* out, int targets,
                          int dims) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  const dim3 grid = grid_of(sums, targets, dims);
  const dim3 block(static_cast<unsigned>(dims), static_cast<unsigned>(targets));
  const size_t bytes = shared_bytes(sums, targets, dims);
  memory_aware_scatter_kernel<T><<<grid, block, bytes, launch.stream>>>(sums, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "memory_aware_scatter_kernel");
}

template void memory_aware<float>(Launch, const RowSums<float>&, int, int);
template void memory_aware<double>(Launch, const RowSums<double>&, int, int);
template void memory_aware<__half>(Launch, const RowSums<__half>&, int, int);
template void memory_aware<__nv_bfloat16>(Launch, const RowSums<__nv_bfloat16>&, int, int);

template <class T>
using Scatter = void(Launch, const RowSums<T>&, Sum<T>*, int, int);
template Scatter<float> memory_aware_scatter<float>;
template Scatter<double> memory_aware_scatter<double>;
template Scatter<__half> memory_aware_scatter<__half>;
template Scatter<__nv_bfloat16> memory_aware_scatter<__nv_bfloat16>;

}  // namespace gnnbench::cuda
