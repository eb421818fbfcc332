// The kernel of tuned.h; a source file for each dtype instantiates it.
#pragma once

#include "cuda/aggregate/row_sums.cuh"
#include "cuda/aggregate/tuned.h"

namespace gnnbench::cuda {

constexpr int kTunedThreads = 256;
constexpr int kTunedEdges = 8;                       // asked for at once
constexpr int64_t kTunedFull = 132 * 2048;           // threads that fill a GPU
constexpr int kTunedMostGroups = kTunedThreads / 8;  // of a block

// Where an edge's weight comes from.
enum class Weighing { kNone, kEdge, kHead };

// The columns (and weights, edges) of up to a group's lanes of consecutive edges, one a lane.
template <class T>
struct Window {
  int32_t base = 0, filled = 0;
  int32_t column = 0, edge = 0;
  Sum<T> weight = 1;
};

template <class T, int kWidth, int kPacks, Weighing kWeighing>
struct RowSummer {
  using Real = Sum<T>;
  const RowSums<T>& a;
  uint32_t packs;  // of a row; 32 bits make an address one multiplication
  int lanes, lane;
  unsigned mask;          // the group's lanes
  uint32_t pack[kPacks];  // this lane's
  uint32_t heads;
  uint32_t head[kPacks];
  Window<T> window;
  bool sound = true;

  struct Partial {
    Real value[kPacks][kWidth];
    Real total;    // of the weights
    Real pending;  // what `value` is still to be multiplied by
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

  // Columns from edge `first` on. One outside the block becomes column 0 and clears `sound`: an
  // assert in the loop costs registers.
  __device__ __forceinline__ void fill(int32_t first, int32_t limit) {
    window.base = first;
    window.filled = limit - first < lanes ? limit - first : lanes;
    const int64_t e = static_cast<int64_t>(first) + lane;
    if (e >= limit) return;
    const int32_t column = column_of(a, e);
    const bool inside = column >= 0 && column < a.num_columns;
    sound = sound && inside;
    window.column = inside ? column : 0;
    if (kWeighing == Weighing::kNone) return;
    window.edge = edge_of(a, e);
    if (kWeighing == Weighing::kEdge) window.weight = weight_of(a, window.edge, window.column);
  }

  // Where a row's pack lies.
  __device__ __forceinline__ int64_t place(uint32_t row, int j) const {
    return static_cast<int64_t>(uint64_t{row} * packs + pack[j]);
  }

  // A sum before its first edge: 0, or the row's own term, which is on its way while the edges' are
  // asked for; only then is it weighed.
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
    if constexpr (kWeighing == Weighing::kEdge) {  // no other sum weighs its row's own term
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum.value[j][i] *= sum.pending;
      }
      sum.pending = 1;
    }
  }

  // Adds n edges, at most kEdges, from lane `at` of the window on.
  template <int kEdges>
  __device__ __forceinline__ void add_batch(Partial& sum, int at, int n) const {
    Elements<T, kWidth> term[kEdges][kPacks];
    Real weight[kEdges][kPacks];
#pragma unroll
    for (int k = 0; k < kEdges; ++k) {
      const auto column = static_cast<uint32_t>(from_lane(window.column, at + k));
      [[maybe_unused]] Real shared = 1;
      [[maybe_unused]] uint32_t edge = 0;
      if (kWeighing == Weighing::kEdge) {
        shared = from_lane(window.weight, at + k);
        shared = k < n ? shared : Real(0);  // what lies beyond the row may be no number
        sum.total += shared;
      }
      if (kWeighing == Weighing::kHead) {
        edge = static_cast<uint32_t>(from_lane(window.edge, at + k));
      }
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        weight[k][j] = shared;
        if (k < n && pack[j] < packs) {
          term[k][j] = load_pack<T, kWidth>(a.x, place(column, j));
          if (kWeighing == Weighing::kHead) {
            weight[k][j] = __ldg(a.weights + uint64_t{edge} * heads + head[j]);
          }
        }
      }
    }
    settle(sum);
#pragma unroll
    for (int k = 0; k < kEdges; ++k) {
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const Real value = to_sum(term[k][j].value[i]);
          if (kWeighing == Weighing::kNone) {
            sum.value[j][i] += value;
          } else {
            sum.value[j][i] += weight[k][j] * value;
          }
        }
      }
    }
  }

  // Adds edges [begin, end) in their order; the window may be filled up to `limit`.
  __device__ __forceinline__ void add(Partial& sum, int32_t begin, int32_t end, int32_t limit) {
    for (int32_t e = begin; e < end;) {
      const int n = end - e < kTunedEdges ? end - e : kTunedEdges;
      if (e < window.base || e - window.base + n > window.filled) fill(e, limit);
      // A load that is not made takes its place among the instructions all the same.
      if (n <= kTunedEdges / 2) {
        add_batch<kTunedEdges / 2>(sum, e - window.base, n);
      } else {
        add_batch<kTunedEdges>(sum, e - window.base, n);
      }
      e += n;
    }
  }

  // What a row's sum becomes.
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

// Of blocks of at most kTunedMostGroups groups, of which each has at most kTunedMostRows rows.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
__global__ void __launch_bounds__(kTunedThreads)
    row_sums_kernel(const RowSums<T> a, int lanes_log2, int rows_of_group) {
  using Summer = RowSummer<T, kWidth, kPacks, kWeighing>;
  using Real = Sum<T>;
  __shared__ unsigned long_rows[kTunedMostGroups];  // of each group, a bit a row
  __shared__ Real parts[kTunedThreads * kWidth];
  __shared__ Real totals[kTunedMostGroups];

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
        if (summer.lane == 0) totals[group] = sum.total;
#pragma unroll
        for (int j = 0; j < kPacks; ++j) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) parts[threadIdx.x * kWidth + i] = sum.value[j][i];
          __syncthreads();
          for (int g = 1; group == 0 && g < groups; ++g) {
            if (j == 0) sum.total += totals[g];
#pragma unroll
            for (int i = 0; i < kWidth; ++i) {
              sum.value[j][i] += parts[((g << lanes_log2) + summer.lane) * kWidth + i];
            }
          }
          __syncthreads();
        }
        if (group == 0) summer.store(sum, row, end - begin);
      }
    }
  }
  assert(summer.sound && "gnnbench aggregate: an index is outside the block");
}

template <class T, int kWidth, int kPacks, Weighing kWeighing>
void launch_row_sums(Launch launch, const RowSums<T>& sums, int rows_of_group) {
  const int64_t packs = sums.dim / kWidth;
  int lanes_log2 = 3;
  while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < packs) ++lanes_log2;
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

template <class T, int kWidth, int kPacks>
void weigh_row_sums(Launch launch, const RowSums<T>& sums, int rows_of_group) {
  const bool divides = sums.block_indptr != nullptr && sums.mode != Aggregate::kSum;
  if (sums.heads > 1) {
    launch_row_sums<T, kWidth, kPacks, Weighing::kHead>(launch, sums, rows_of_group);
  } else if (sums.weights != nullptr || divides) {
    launch_row_sums<T, kWidth, kPacks, Weighing::kEdge>(launch, sums, rows_of_group);
  } else {
    launch_row_sums<T, kWidth, kPacks, Weighing::kNone>(launch, sums, rows_of_group);
  }
}

template <class T>
void row_sums(Launch launch, const RowSums<T>& sums, int rows_of_group) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  // A pack lies within one head.
  const int bytes = pack_bytes<T>(sums.x, sums.out, sums.dim / sums.heads);
  constexpr int kSize = sizeof(T);
  if (bytes == 16) {
    if (sums.dim <= 32 * (16 / kSize)) {
      weigh_row_sums<T, 16 / kSize, 1>(launch, sums, rows_of_group);
    } else {
      weigh_row_sums<T, 16 / kSize, 2>(launch, sums, rows_of_group);
    }
  } else if (bytes == 8) {
    weigh_row_sums<T, 8 / kSize, 2>(launch, sums, rows_of_group);
  } else if constexpr (kSize <= 4) {
    if (bytes == 4) {
      weigh_row_sums<T, 4 / kSize, 2>(launch, sums, rows_of_group);
    } else if constexpr (kSize == 2) {
      weigh_row_sums<T, 1, 2>(launch, sums, rows_of_group);
    }
  }
}

}  // namespace gnnbench::cuda
