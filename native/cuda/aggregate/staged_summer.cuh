// How a team of lanes sums a range of a row's edges whose ids and weights it stages.
#pragma once

#include "cuda/aggregate/memory_aware_warp.h"
#include "cuda/aggregate/row_summer.cuh"

namespace gnnbench::cuda {

constexpr int kStagedEdges = 8;  // rows in flight

// Edges of a tile, and the weights of each: one for each head that the columns of a team meet.
struct StagedTile {
  int edges, weights;
};

// Bytes of a team's tile. An odd distance between heads avoids bank conflicts.
template <class Real>
__host__ __device__ constexpr int64_t staged_weights(StagedTile tile) {
  return int64_t{tile.weights} * (tile.edges + 1);
}
template <class Real>
__host__ __device__ constexpr int64_t staged_bytes(StagedTile tile) {
  return staged_weights<Real>(tile) * sizeof(Real) + tile.edges * sizeof(int32_t);
}

// As RowSummer, which exchanges ids and weights by shuffle.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
struct StagedSummer : RowSummer<T, kWidth, kPacks, kWeighing> {
  using Base = RowSummer<T, kWidth, kPacks, kWeighing>;
  using Real = Sum<T>;
  using Partial = typename Base::Partial;
  static constexpr int kColumns = kWidth * kPacks;  // of a lane
  using Base::a;
  using Base::lane;
  using Base::lanes;
  using Base::mask;
  using Base::pack;
  using Base::packs;

  StagedTile tile;
  Real* weights;  // [tile.weights, tile.edges + 1] of the team
  int32_t* ids;   // [tile.edges] of the team
  int64_t first_head;
  int32_t base = 0, filled = 0;  // edges in the tile

  __device__ __forceinline__ StagedSummer(const RowSums<T>& sums, int lanes_log2, StagedTile size,
                                          double* shared)
      : Base(sums, lanes_log2), tile(size) {
    const int teams = static_cast<int>(blockDim.x) >> lanes_log2;
    const int team = static_cast<int>(threadIdx.x) >> lanes_log2;
    Real* const begin = reinterpret_cast<Real*>(shared);
    weights = begin + team * staged_weights<Real>(tile);
    ids =
        reinterpret_cast<int32_t*>(begin + teams * staged_weights<Real>(tile)) + team * tile.edges;
    first_head = 0;
    if (kWeighing == Weighing::kHead) {
      first_head = int64_t{blockIdx.y} * lanes * kColumns / (a.dim / a.heads);
    }
  }

  // Weights of the head of pack j.
  __device__ __forceinline__ const Real* weights_of(int j) const {
    if (kWeighing != Weighing::kHead || pack[j] >= packs) return weights;
    return weights + (this->head[j] - first_head) * (tile.edges + 1);
  }

  // Stages the edges from `first` on, up to `limit`. The team's lanes call it. A column outside the
  // block becomes column 0 and clears `valid`.
  __device__ __forceinline__ void stage(int32_t first, int32_t limit) {
    __syncwarp(mask);  // the previous tile has been read
    base = first;
    filled = limit - first < tile.edges ? limit - first : tile.edges;
    for (int k = lane; k < filled; k += lanes) {
      const int64_t e = static_cast<int64_t>(first) + k;
      const int32_t column = column_of(a, e);
      const bool inside = column >= 0 && column < a.num_columns;
      this->valid = this->valid && inside;
      ids[k] = inside ? column : 0;
      if (kWeighing == Weighing::kEdge) {
        weights[k] = weight_of(a, edge_of(a, e), inside ? column : 0);
      }
      if (kWeighing == Weighing::kHead) {
        const Real* const from =
            a.weights + static_cast<int64_t>(edge_of(a, e)) * a.heads + first_head;
        for (int h = 0; h < tile.weights && first_head + h < a.heads; ++h) {
          weights[h * (tile.edges + 1) + k] = __ldg(from + h);
        }
      }
    }
    __syncwarp(mask);
  }

  // Adds n edges, at most kEdges, from place `at` of the tile on.
  template <int kEdges>
  __device__ __forceinline__ void add_staged(Partial& sum, int at, int n) const {
    Elements<T, kWidth> term[kEdges][kPacks];
#pragma unroll
    for (int k = 0; k < kEdges; ++k) {
      if (k >= n) continue;
      const auto id = static_cast<uint32_t>(ids[at + k]);
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (pack[j] < packs) term[k][j] = load_pack<T, kWidth>(a.x, this->place(id, j));
      }
    }
    Base::settle(sum);
#pragma unroll
    for (int k = 0; k < kEdges; ++k) {
      if (kWeighing == Weighing::kEdge && k < n) sum.total += weights[at + k];
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        Real weight = 0;
        if (kWeighing != Weighing::kNone && k < n) weight = weights_of(j)[at + k];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const Real value = to_sum(term[k][j].value[i]);
          if (kWeighing == Weighing::kNone) {
            sum.value[j][i] += value;
          } else {
            sum.value[j][i] += weight * value;
          }
        }
      }
    }
  }

  // Adds edges [begin, end) in order. The tile may be filled up to `limit`.
  __device__ __forceinline__ void add(Partial& sum, int32_t begin, int32_t end, int32_t limit) {
    for (int32_t e = begin; e < end;) {
      const int n = end - e < kStagedEdges ? end - e : kStagedEdges;
      if (e < base || e - base + n > filled) stage(e, limit);
      // A load that is predicated off still costs an instruction.
      if (n <= kStagedEdges / 2) {
        add_staged<kStagedEdges / 2>(sum, e - base, n);
      } else {
        add_staged<kStagedEdges>(sum, e - base, n);
      }
      e += n;
    }
  }

  // Stores a sum without its final factor at row `to` of [.., dim].
  __device__ __forceinline__ void keep(const Partial& sum, Real* kept, int64_t to) const {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (pack[j] >= packs) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        kept[this->place(static_cast<uint32_t>(to), j) * kWidth + i] = sum.value[j][i];
      }
    }
  }
  __device__ __forceinline__ void add_kept(Partial& sum, const Real* kept, int64_t from) const {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (pack[j] >= packs) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        sum.value[j][i] += __ldg(kept + this->place(static_cast<uint32_t>(from), j) * kWidth + i);
      }
    }
  }
};

// Sums of a long row's parts, in shared memory.
template <class Summer>
struct StagedParts {
  using Real = typename Summer::Real;
  Real values[kWarpParts][32 * Summer::kColumns];
  Real totals[kWarpParts];

  __device__ __forceinline__ void put(const Summer& summer, int part,
                                      const typename Summer::Partial& sum) {
    if (summer.lane == 0) totals[part] = sum.total;
#pragma unroll
    for (int j = 0; j < Summer::kOwnPacks; ++j) {
#pragma unroll
      for (int i = 0; i < Summer::kPackWidth; ++i) {
        values[part][(j * Summer::kPackWidth + i) * 32 + summer.lane] = sum.value[j][i];
      }
    }
  }

  // Their sum, in order; after a barrier.
  __device__ __forceinline__ typename Summer::Partial joined(const Summer& summer) const {
    typename Summer::Partial sum = {};
    sum.pending = 1;
    for (int part = 0; part < kWarpParts; ++part) {
      sum.total += totals[part];
#pragma unroll
      for (int j = 0; j < Summer::kOwnPacks; ++j) {
#pragma unroll
        for (int i = 0; i < Summer::kPackWidth; ++i) {
          sum.value[j][i] += values[part][(j * Summer::kPackWidth + i) * 32 + summer.lane];
        }
      }
    }
    return sum;
  }
};

}  // namespace gnnbench::cuda
