// The kernel of tuned.h; one source file per dtype instantiates it.
#pragma once

#include "cuda/aggregate/row_summer.cuh"
#include "cuda/aggregate/tuned.h"

namespace gnnbench::cuda {

constexpr int64_t kTunedFull = 132 * 2048;  // threads that fill a GPU

// Blocks have at most kTunedMostGroups groups, each group at most kTunedMostRows rows.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
__global__ void __launch_bounds__(kTunedThreads)
    row_sums_kernel(const RowSums<T> a, int lanes_log2, int rows_of_group) {
  using Summer = RowSummer<T, kWidth, kPacks, kWeighing>;
  using Real = Sum<T>;
  __shared__ unsigned long_rows[kTunedMostGroups];  // per group, one bit per row
  __shared__ GroupSums<Real, kWidth> shared;

  Summer summer(a, lanes_log2);
  const int groups = kTunedThreads >> lanes_log2;
  const int group = static_cast<int>(threadIdx.x) >> lanes_log2;
  const int64_t block_row = static_cast<int64_t>(blockIdx.x) * groups * rows_of_group;
  const int64_t first = block_row + static_cast<int64_t>(group) * rows_of_group;
  unsigned deferred = 0;
  if (first < a.num_rows) {
    const int64_t left = a.num_rows - first;
    const int rows = left < rows_of_group ? static_cast<int>(left) : rows_of_group;
    const int32_t offset = __ldg(a.indptr + first + (summer.lane < rows ? summer.lane : rows));
    const int32_t last = summer.from_lane(offset, rows);
    const int32_t limit = last < a.num_edges ? last : static_cast<int32_t>(a.num_edges);
    int32_t begin = summer.from_lane(offset, 0);
    Real own_weight = 1;  // of row first + lane
    if (kWeighing == Weighing::kEdge && summer.lane < rows && with_self(a, first + summer.lane)) {
      own_weight = self_weight(a, first + summer.lane);
    }
    for (int r = 0; r < rows; ++r) {
      const int32_t end = summer.from_lane(offset, r + 1);
      assert(begin >= 0 && begin <= end && end <= a.num_edges &&
             "gnnbench aggregate: indptr is broken");
      if (end - begin > kTunedLongRow) {
        deferred |= 1u << r;
      } else {
        const Real weight =
            kWeighing == Weighing::kEdge ? summer.from_lane(own_weight, r) : Real(1);
        auto sum = summer.begin(first + r, with_self(a, first + r), weight);
        summer.add(sum, begin, end, limit);
        summer.store(sum, first + r, end - begin);
      }
      begin = end;
    }
  }
  if (__syncthreads_or(deferred != 0)) {
    if (summer.lane == 0) long_rows[group] = deferred;
    __syncthreads();
    for (int owner = 0; owner < groups; ++owner) {
      for (unsigned rows = long_rows[owner]; rows != 0; rows &= rows - 1) {
        const int64_t row =
            block_row + static_cast<int64_t>(owner) * rows_of_group + __ffs(rows) - 1;
        const int32_t begin = __ldg(a.indptr + row), end = __ldg(a.indptr + row + 1);
        const int64_t edges = end - begin;
        const bool self = group == 0 && with_self(a, row);
        auto sum = summer.begin(row, self, self ? self_weight(a, row) : Real(1));
        const auto low = static_cast<int32_t>(begin + edges * group / groups);
        const auto high = static_cast<int32_t>(begin + edges * (group + 1) / groups);
        summer.add(sum, low, high, high);
        summer.join(sum, shared, group, groups);
        if (group == 0) summer.store(sum, row, end - begin);
      }
    }
  }
  assert(summer.valid && "gnnbench aggregate: an index is outside the block");
}

template <class T, int kWidth, int kPacks, Weighing kWeighing>
void launch_row_sums(Launch launch, const RowSums<T>& sums, int rows_of_group) {
  const int64_t packs = sums.dim / kWidth;
  const int lanes_log2 = group_lanes_log2(packs);
  const int64_t cuts = blocks_for(packs, int64_t{kPacks} << lanes_log2);
  const int64_t most = (sums.num_rows * cuts << lanes_log2) / kTunedFull;
  if (most < rows_of_group) rows_of_group = most < 1 ? 1 : static_cast<int>(most);
  const int64_t rows = int64_t{kTunedThreads >> lanes_log2} * rows_of_group;
  const dim3 grid(static_cast<unsigned>(blocks_for(sums.num_rows, rows)),
                  static_cast<unsigned>(cuts));
  row_sums_kernel<T, kWidth, kPacks, kWeighing>
      <<<grid, kTunedThreads, 0, launch.stream>>>(sums, lanes_log2, rows_of_group);
  GNNBENCH_CUDA_LAUNCHED(launch, "row_sums_kernel");
}

template <class T>
void row_sums(Launch launch, const RowSums<T>& sums, int rows_of_group) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  by_layout<2>(sums, [&]<int kWidth, int kPacks, Weighing kWeighing>() {
    launch_row_sums<T, kWidth, kPacks, kWeighing>(launch, sums, rows_of_group);
  });
}

}  // namespace gnnbench::cuda
