// How a group of lanes sums a range of a row's edges.
#pragma once

#include "cuda/aggregate/row_sums.cuh"
#include "cuda/aggregate/sum_layout.cuh"

namespace gnnbench::cuda {

constexpr int kTunedThreads = 256;
constexpr int kTunedEdges = 8;                       // loaded at once
constexpr int kTunedMostGroups = kTunedThreads / 8;  // per block

// The columns (and weights, edges) of as many consecutive edges as the group has lanes, one per
// lane.
template <class T>
struct Window {
  int32_t base = 0, filled = 0;
  int32_t column = 0, edge = 0;
  Sum<T> weight = 1;
};

// Shared memory through which the groups of a block exchange sums.
template <class Real, int kWidth>
struct GroupSums {
  Real values[kTunedThreads * kWidth];
  Real totals[kTunedMostGroups];
};

// One thread's part in summing rows: a lane of a group and its packs of a row.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
struct RowSummer {
  using Real = Sum<T>;
  static constexpr int kPackWidth = kWidth, kOwnPacks = kPacks;
  const RowSums<T>& a;
  uint32_t packs;  // per row; 32 bits make an address one multiplication
  int lanes, lane;
  unsigned mask;          // the group's lanes
  uint32_t pack[kPacks];  // packs of this lane
  uint32_t heads;
  uint32_t head[kPacks];
  Window<T> window;
  bool valid = true;

  struct Partial {
    Real value[kPacks][kWidth];
    Real total;    // sum of the weights
    Real pending;  // factor that `value` is still to be multiplied by
  };

  __device__ __forceinline__ RowSummer(const RowSums<T>& sums, int lanes_log2)
      : a(sums),
        packs(static_cast<uint32_t>(sums.dim / kWidth)),
        lanes(1 << lanes_log2),
        heads(static_cast<uint32_t>(sums.heads)) {
    const int within = static_cast<int>(threadIdx.x) & 31;
    lane = within & (lanes - 1);
    mask = lanes == 32 ? 0xffffffffu : ((1u << lanes) - 1) << (within - lane);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      pack[j] =
          (blockIdx.y * kPacks + j) * static_cast<uint32_t>(lanes) + static_cast<uint32_t>(lane);
      head[j] = kWeighing == Weighing::kHead && pack[j] < packs
                    ? static_cast<uint32_t>(pack[j] * kWidth / (sums.dim / sums.heads))
                    : 0;
    }
  }

  template <class V>
  __device__ __forceinline__ V from_lane(V value, int source) const {
    return __shfl_sync(mask, value, source, lanes);
  }

  // Loads the columns from edge `first` on. A column outside the block becomes column 0 and clears
  // `valid`, because an assert in the loop costs registers.
  __device__ __forceinline__ void fill(int32_t first, int32_t limit) {
    window.base = first;
    window.filled = limit - first < lanes ? limit - first : lanes;
    const int64_t e = static_cast<int64_t>(first) + lane;
    if (e >= limit) return;
    const int32_t column = column_of(a, e);
    const bool inside = column >= 0 && column < a.num_columns;
    valid = valid && inside;
    window.column = inside ? column : 0;
    if (kWeighing == Weighing::kNone) return;
    window.edge = edge_of(a, e);
    if (kWeighing == Weighing::kEdge) window.weight = weight_of(a, window.edge, window.column);
  }

  // Offset of a pack of a row.
  __device__ __forceinline__ int64_t place(uint32_t row, int j) const {
    return static_cast<int64_t>(uint64_t{row} * packs + pack[j]);
  }

  // A sum before its first edge: 0, or the row's own term. That term is loaded concurrently with
  // the edges and multiplied by its weight afterwards.
  __device__ __forceinline__ Partial begin(int64_t row, bool self, Real self_weight) const {
    Partial sum = {};
    sum.pending = self_weight;
    if (self) {
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (pack[j] >= packs) continue;
        const auto own = load_pack<T, kWidth>(a.x, place(static_cast<uint32_t>(row), j));
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum.value[j][i] = to_sum(own.value[i]);
      }
    }
    return sum;
  }

  __device__ __forceinline__ static void settle(Partial& sum) {
    if constexpr (kWeighing == Weighing::kEdge) {  // other sums do not weight the own term
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum.value[j][i] *= sum.pending;
      }
      sum.pending = 1;
    }
  }

  // Loaded edges and their weights.
  template <int kEdges>
  struct Batch {
    Elements<T, kWidth> term[kEdges][kPacks];
    Real weight[kEdges][kPacks];
  };

  // Loads n edges, at most kEdges, from lane `at` of the window on.
  template <int kEdges>
  __device__ __forceinline__ void ask(Batch<kEdges>& batch, int at, int n) const {
#pragma unroll
    for (int k = 0; k < kEdges; ++k) {
      const auto column = static_cast<uint32_t>(from_lane(window.column, at + k));
      [[maybe_unused]] Real shared = 1;
      [[maybe_unused]] uint32_t edge = 0;
      if (kWeighing == Weighing::kEdge) {
        shared = from_lane(window.weight, at + k);
        shared = k < n ? shared : Real(0);  // beyond the row it may be NaN
      }
      if (kWeighing == Weighing::kHead) {
        edge = static_cast<uint32_t>(from_lane(window.edge, at + k));
      }
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        batch.weight[k][j] = shared;
        if (k < n && pack[j] < packs) {
          batch.term[k][j] = load_pack<T, kWidth>(a.x, place(column, j));
          if (kWeighing == Weighing::kHead) {
            batch.weight[k][j] = __ldg(a.weights + uint64_t{edge} * heads + head[j]);
          }
        }
      }
    }
  }

  // Adds edge k of a batch.
  template <int kEdges>
  __device__ __forceinline__ static void take(Partial& sum, const Batch<kEdges>& batch, int k) {
    if (kWeighing == Weighing::kEdge) sum.total += batch.weight[k][0];
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const Real value = to_sum(batch.term[k][j].value[i]);
        if (kWeighing == Weighing::kNone) {
          sum.value[j][i] += value;
        } else {
          sum.value[j][i] += batch.weight[k][j] * value;
        }
      }
    }
  }

  // Adds n edges, at most kEdges, from lane `at` of the window on.
  template <int kEdges>
  __device__ __forceinline__ void add_batch(Partial& sum, int at, int n) const {
    Batch<kEdges> batch;
    ask(batch, at, n);
    settle(sum);
#pragma unroll
    for (int k = 0; k < kEdges; ++k) take(sum, batch, k);
  }

  // Adds edges [begin, end) in order. The window may be filled up to `limit`.
  __device__ __forceinline__ void add(Partial& sum, int32_t begin, int32_t end, int32_t limit) {
    for (int32_t e = begin; e < end;) {
      const int n = end - e < kTunedEdges ? end - e : kTunedEdges;
      if (e < window.base || e - window.base + n > window.filled) fill(e, limit);
      // A load that is predicated off still costs an instruction.
      if (n <= kTunedEdges / 2) {
        add_batch<kTunedEdges / 2>(sum, e - window.base, n);
      } else {
        add_batch<kTunedEdges>(sum, e - window.base, n);
      }
      e += n;
    }
  }

  // Adds the sums of a block's groups in order; the first group gets the result. All threads of the
  // block call it.
  __device__ __forceinline__ void join(Partial& sum, GroupSums<Real, kWidth>& shared, int group,
                                       int groups) const {
    if (lane == 0) shared.totals[group] = sum.total;
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) shared.values[threadIdx.x * kWidth + i] = sum.value[j][i];
      __syncthreads();
      for (int g = 1; group == 0 && g < groups; ++g) {
        if (j == 0) sum.total += shared.totals[g];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          sum.value[j][i] += shared.values[(g * lanes + lane) * kWidth + i];
        }
      }
      __syncthreads();
    }
  }

  // Finalises and stores a row's sum.
  __device__ __forceinline__ void store(Partial& sum, int64_t row, int32_t degree) const {
    settle(sum);
    const Real factor =
        row_factor(a, degree, kWeighing == Weighing::kNone ? static_cast<Real>(degree) : sum.total);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (pack[j] >= packs) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum.value[j][i] *= factor;
      store_pack<T, kWidth>(a.out, place(static_cast<uint32_t>(row), j), sum.value[j]);
    }
  }
};

}  // namespace gnnbench::cuda
