#include "cuda/aggregate/memory_aware.h"
#include "cuda/aggregate/row_sums.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kTile = 32;  // edges of a target whose weights are in shared memory at a time

// Number of heads that a block's columns can belong to, and so of weights per edge in shared
// memory.
__host__ __device__ int64_t heads_of_block(int64_t heads, int64_t dim, int64_t dims) {
  const int64_t width = dim / heads;
  const int64_t met = (dims + width - 2) / width + 1;
  return met < heads ? met : heads;
}

template <class T>
__global__ void memory_aware_kernel(const RowSums<T> a) {
  using Real = Sum<T>;
  extern __shared__ double shared[];
  const int dims = static_cast<int>(blockDim.x), targets = static_cast<int>(blockDim.y);
  const int slot = static_cast<int>(threadIdx.y) * dims + static_cast<int>(threadIdx.x);
  // Volatile: the paper's sums are in shared memory, but a compiler would keep them in registers.
  volatile Real* const partial = reinterpret_cast<Real*>(shared);
  Real* const weights = reinterpret_cast<Real*>(shared) + targets * dims;

  const int64_t first_column = static_cast<int64_t>(blockIdx.y) * dims;
  const int64_t column = first_column + threadIdx.x;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * targets + threadIdx.y;
  const int64_t width = a.dim / a.heads, first_head = first_column / width;
  const int heads = static_cast<int>(heads_of_block(a.heads, a.dim, dims));
  const bool has_row = row < a.num_rows, owns = has_row && column < a.dim;
  const int head = owns ? static_cast<int>(column / width - first_head) : 0;
  Real* const own_weights = weights + static_cast<int64_t>(threadIdx.y) * kTile * heads;

  int32_t begin = 0, end = 0;
  if (has_row) {
    begin = __ldg(a.indptr + row);
    end = __ldg(a.indptr + row + 1);
    assert(begin >= 0 && begin <= end && end <= a.num_edges &&
           "gnnbench aggregate: indptr is broken");
  }
  bool valid = true;
  const auto column_at = [&](int64_t e) {
    const int32_t found = column_of(a, e);
    const bool inside = found >= 0 && found < a.num_columns;
    valid = valid && inside;
    return inside ? found : 0;
  };
  partial[slot] = 0;
  Real total = 0;
  for (int64_t low = begin; __syncthreads_or(low < end); low += kTile) {
    const int n = low >= end ? 0 : end - low < kTile ? static_cast<int>(end - low) : kTile;
    for (int i = static_cast<int>(threadIdx.x); i < n * heads; i += dims) {
      const int64_t e = low + i / heads;
      const int64_t met = first_head + i % heads;
      const int32_t edge = edge_of(a, e);
      own_weights[i] = a.heads > 1 ? (met < a.heads ? __ldg(a.weights + edge * a.heads + met) : 0)
                                   : weight_of(a, edge, column_at(e));
    }
    __syncthreads();
    for (int k = 0; owns && k < n; ++k) {
      const Real weight = own_weights[k * heads + head];
      const Real value = to_sum(__ldg(a.x + column_at(low + k) * a.dim + column));
      total += weight;
      partial[slot] = partial[slot] + weight * value;
    }
  }
  if (owns) {
    Real sum = partial[slot];
    if (with_self(a, row)) sum += self_weight(a, row) * to_sum(__ldg(a.x + row * a.dim + column));
    if (a.weights == nullptr) total = static_cast<Real>(end - begin);
    a.out[row * a.dim + column] = from_sum<T>(sum * row_factor(a, end - begin, total));
  }
  assert(valid && "gnnbench aggregate: an index is outside the block");
}

}  // namespace

int64_t memory_aware_shared_bytes(int64_t real_bytes, int64_t heads, int64_t dim, int targets,
                                  int dims) {
  return real_bytes * targets * (dims + kTile * heads_of_block(heads, dim, dims));
}

template <class T>
void memory_aware(Launch launch, const RowSums<T>& sums, int targets, int dims) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  const dim3 grid(static_cast<unsigned>(blocks_for(sums.num_rows, targets)),
                  static_cast<unsigned>(blocks_for(sums.dim, dims)));
  const dim3 block(static_cast<unsigned>(dims), static_cast<unsigned>(targets));
  const auto bytes = static_cast<size_t>(
      memory_aware_shared_bytes(sizeof(Sum<T>), sums.heads, sums.dim, targets, dims));
  memory_aware_kernel<T><<<grid, block, bytes, launch.stream>>>(sums);
  GNNBENCH_CUDA_LAUNCHED(launch, "memory_aware_kernel");
}

template void memory_aware<float>(Launch, const RowSums<float>&, int, int);
template void memory_aware<double>(Launch, const RowSums<double>&, int, int);
template void memory_aware<__half>(Launch, const RowSums<__half>&, int, int);
template void memory_aware<__nv_bfloat16>(Launch, const RowSums<__nv_bfloat16>&, int, int);

}  // namespace gnnbench::cuda
