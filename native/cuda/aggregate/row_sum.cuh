// Sums of rows, shared by both directions of the aggregation: a group of lanes owns an output row,
// a lane owns columns and adds the terms in stored order, so that no sum depends on the schedule.
#pragma once

#include "cuda/aggregate/aggregate.h"
#include "cuda/common/device_assert.h"

namespace gnnbench::cuda {

constexpr int kRowSumThreads = 256;

// Columns that travel together: 16 bytes where alignment allows.
template <class Real, int kWidth>
struct alignas(kWidth * sizeof(Real)) Pack {
  Real value[kWidth];
};

// A row's share of lanes: the power of two that covers its packs, at most a warp.
inline int row_sum_lanes_log2(int64_t packs) {
  int log2 = 0;
  while (log2 < 5 && (int64_t{1} << log2) < packs) ++log2;
  return log2;
}

template <class Real>
bool packs_of_16_bytes(const void* a, const void* b, int64_t dim) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
                         static_cast<uintptr_t>(dim * static_cast<int64_t>(sizeof(Real)));
  return bits % 16 == 0;
}

// acc += weight(row) * x[row] for the rows columns[begin..end), four loads in flight. A row outside
// [0, num_rows) is replaced by row 0 and clears `sound`: an assert in the loop costs registers.
template <class Real, int kWidth, class Weight>
__device__ __forceinline__ void add_rows(Pack<Real, kWidth>& acc,
                                         const Pack<Real, kWidth>* __restrict__ x, int64_t packs,
                                         int64_t pack, const int32_t* __restrict__ columns,
                                         int32_t begin, int32_t end, int64_t num_rows,
                                         Weight weight, bool& sound) {
  constexpr int kBatch = 4;
  const auto row_at = [&](int32_t e) {
    const int32_t row = columns[e];
    const bool inside = row >= 0 && row < num_rows;
    sound = sound && inside;
    return inside ? row : 0;
  };
  int32_t e = begin;
  for (; e + kBatch <= end; e += kBatch) {
    int32_t row[kBatch];
    Real w[kBatch];
    Pack<Real, kWidth> term[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) row[k] = row_at(e + k);
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      w[k] = weight(row[k]);
      term[k] = x[row[k] * packs + pack];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) acc.value[i] += w[k] * term[k].value[i];
    }
  }
  for (; e < end; ++e) {
    const int32_t row = row_at(e);
    const Real w = weight(row);
    const Pack<Real, kWidth> term = x[row * packs + pack];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) acc.value[i] += w * term.value[i];
  }
}

}  // namespace gnnbench::cuda
