// Twin graphs on the GPU, first part: weights of the positions, and how many edges each row draws
// at each level. One thread per position. The passes equal those of the CPU, whose sums are exact.
#include "cuda/twin/find.cuh"
#include "cuda/twin/rows.cuh"
#include "cuda/twin/twin.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

__device__ int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

__global__ void positions_kernel(TwinRows rows, twin::Bijection ids) {
  const int64_t i = thread_index();
  if (i > rows.n) return;
  if (i == rows.n) {
    rows.prefix[0][i] = rows.prefix[1][i] = 0;
    return;
  }
  const auto position = static_cast<uint32_t>(i);
  const int64_t c = range_of(rows.community_ptr, rows.communities, i);
  rows.community_of[i] = static_cast<uint32_t>(c);
  rows.id_of[i] = ids(position);
  const auto size = static_cast<uint64_t>(rows.community_ptr[c + 1] - rows.community_ptr[c]);
  const uint64_t weight = rows.weights.out(position);
  for (int inside = 0; inside < 2; ++inside) {
    rows.prefix[inside][i] =
        twin::level_weight(weight, inside != 0, size, rows.out_limit, rows.boost);
  }
  if (!rows.symmetric) rows.in_weight[i] = static_cast<uint32_t>(rows.weights.in(position));
  for (int level = 0; level < twin::kLevels; ++level) rows.wanted[level][i] = 0;
}

__device__ uint64_t room(const TwinRows& rows, const RowBounds& bounds, int64_t i, int level,
                         bool by_room) {
  const uint32_t count = twin::level_range(bounds.at, level, rows.symmetric).count();
  const uint32_t most = by_room ? count : count - count / 2;
  const uint32_t has = rows.wanted[level][i];
  return most > has ? most - has : 0;
}

__device__ uint64_t share(const TwinRows& rows, const RowBounds& bounds, int64_t i, int level) {
  const uint64_t* sums = rows.prefix[level == 0];
  const uint64_t weight = twin::level_range(bounds.at, level, rows.symmetric).weight(sums);
  if (weight == 0) return 0;
  if (!rows.symmetric) {
    return twin::level_weight(rows.in_weight[i], level == 0, bounds.at[1][1] - bounds.at[1][0],
                              rows.in_limit, rows.boost);
  }
  const uint32_t* outer = bounds.at[level + 1];
  return (sums[i + 1] - sums[i]) * ((weight << 16) / (sums[outer[1]] - sums[outer[0]]));
}

__global__ void shares_kernel(TwinRows rows, int level, bool by_room, uint64_t* shares) {
  const int64_t i = thread_index();
  if (i > rows.n) return;
  uint64_t own = 0;
  if (i < rows.n) {
    const RowBounds bounds(rows, i);
    own = room(rows, bounds, i, level, by_room);
    if (own > 0 && !by_room) own = share(rows, bounds, i, level);
  }
  shares[i] = own;
}

__global__ void give_kernel(TwinRows rows, int level, bool by_room, uint64_t left, uint64_t total,
                            const uint64_t* sums, uint64_t* given) {
  const int64_t i = thread_index();
  if (i >= rows.n || sums[i + 1] == sums[i]) return;
  const uint64_t part =
      twin::mul_div(sums[i + 1], left, total) - twin::mul_div(sums[i], left, total);
  const uint64_t most = room(rows, RowBounds(rows, i), i, level, by_room);
  const uint64_t taken = part < most ? part : most;
  if (taken == 0) return;
  rows.wanted[level][i] += static_cast<uint32_t>(taken);
  atomicAdd(reinterpret_cast<unsigned long long*>(given), static_cast<unsigned long long>(taken));
}

__global__ void row_sizes_kernel(TwinRows rows, int64_t* start) {
  const int64_t i = thread_index();
  if (i > rows.n) return;
  int64_t sum = 0;
  for (int level = 0; i < rows.n && level < twin::kLevels; ++level) sum += rows.wanted[level][i];
  start[i] = sum;
}

}  // namespace

void twin_positions(Launch launch, TwinRows rows) {
  const twin::Bijection ids(rows.weights.key, twin::kStreamIds, static_cast<uint32_t>(rows.n));
  positions_kernel<<<blocks_for(rows.n + 1, kThreads), kThreads, 0, launch.stream>>>(rows, ids);
  GNNBENCH_CUDA_LAUNCHED(launch, "positions_kernel");
}

void twin_shares(Launch launch, TwinRows rows, int level, bool by_room, uint64_t* shares) {
  shares_kernel<<<blocks_for(rows.n + 1, kThreads), kThreads, 0, launch.stream>>>(rows, level,
                                                                                  by_room, shares);
  GNNBENCH_CUDA_LAUNCHED(launch, "shares_kernel");
}

void twin_give(Launch launch, TwinRows rows, int level, bool by_room, uint64_t left, uint64_t total,
               const uint64_t* sums, uint64_t* given) {
  give_kernel<<<blocks_for(rows.n, kThreads), kThreads, 0, launch.stream>>>(
      rows, level, by_room, left, total, sums, given);
  GNNBENCH_CUDA_LAUNCHED(launch, "give_kernel");
}

void twin_row_sizes(Launch launch, TwinRows rows, int64_t* start) {
  row_sizes_kernel<<<blocks_for(rows.n + 1, kThreads), kThreads, 0, launch.stream>>>(rows, start);
  GNNBENCH_CUDA_LAUNCHED(launch, "row_sizes_kernel");
}

}  // namespace gnnbench::cuda
