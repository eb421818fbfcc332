// The kernels of memory_aware_warp.h; one source file per dtype instantiates them.
#pragma once

#include "cuda/aggregate/memory_aware_warp.h"
#include "cuda/aggregate/staged_summer.cuh"

namespace gnnbench::cuda {

constexpr int64_t kWarpFull = 132 * 2048;  // threads that fill a GPU
constexpr int kWarpListBlocks = 132 * 8;   // for lists whose length is known on the device only
constexpr int kWarpThreads = 32 * kWarpMostWarps;
constexpr int64_t kWarpSharedBytes = 24 << 10;  // of a block's tiles: eight blocks fit
constexpr int kWarpTile = 64;                   // edges

__device__ __forceinline__ int64_t number_of_pieces(int64_t edges, int64_t of_piece) {
  return (edges + of_piece - 1) / of_piece;
}

// Lists the pieces of a long row. The team's lanes call it.
template <class Summer, class T>
__device__ __forceinline__ void list_pieces(const Summer& summer, const WarpPieces<T>& pieces,
                                            int32_t row, int32_t begin, int32_t end) {
  const auto number = static_cast<int32_t>(number_of_pieces(end - begin, pieces.edges));
  int32_t first = 0;
  if (summer.lane == 0) {
    first = atomicAdd(pieces.counts, number);
    const int32_t at = atomicAdd(pieces.counts + 1, 1);
    pieces.long_row[at] = row;
    pieces.first_piece[at] = first;
  }
  first = summer.from_lane(first, 0);
  for (int32_t i = summer.lane; i < number; i += summer.lanes) {
    pieces.row[first + i] = row;
    pieces.begin[first + i] = begin + i * pieces.edges;
  }
}

// A team per `rows_of_team` rows. Long rows: if kListed, listed in `pieces`; otherwise summed by
// the teams of the block.
template <class T, int kWidth, int kPacks, Weighing kWeighing, bool kListed>
__global__ void __launch_bounds__(kWarpThreads)
    memory_aware_warp_kernel(const RowSums<T> a, const WarpPieces<T> pieces, int lanes_log2,
                             int rows_of_team, StagedTile tile) {
  using Summer = StagedSummer<T, kWidth, kPacks, kWeighing>;
  using Real = Sum<T>;
  extern __shared__ double staged[];
  Summer summer(a, lanes_log2, tile, staged);
  const int teams = static_cast<int>(blockDim.x) >> lanes_log2;
  const int team = static_cast<int>(threadIdx.x) >> lanes_log2;
  const int64_t block_row = static_cast<int64_t>(blockIdx.x) * teams * rows_of_team;
  const int64_t first = block_row + static_cast<int64_t>(team) * rows_of_team;
  const int64_t long_edges = kListed ? int64_t{pieces.edges} : kWarpLong;
  unsigned deferred = 0;
  if (first < a.num_rows) {
    const int64_t left = a.num_rows - first;
    const int rows = left < rows_of_team ? static_cast<int>(left) : rows_of_team;
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
      const Real weight = kWeighing == Weighing::kEdge ? summer.from_lane(own_weight, r) : Real(1);
      if (end - begin <= long_edges) {
        auto sum = summer.begin(first + r, with_self(a, first + r), weight);
        summer.add(sum, begin, end, limit);
        summer.store(sum, first + r, end - begin);
      } else if (!kListed) {
        deferred |= 1u << r;
      } else if (blockIdx.y == 0) {
        list_pieces(summer, pieces, static_cast<int32_t>(first + r), begin, end);
      }
      begin = end;
    }
  }
  if constexpr (!kListed) {
    __shared__ StagedParts<Summer> parts;
    __shared__ unsigned long_rows[kWarpThreads / 8];  // per team, one bit per row
    if (__syncthreads_or(deferred != 0)) {
      if (summer.lane == 0) long_rows[team] = deferred;
      __syncthreads();
      for (int owner = 0; owner < teams; ++owner) {
        for (unsigned rows = long_rows[owner]; rows != 0; rows &= rows - 1) {
          const int64_t row =
              block_row + static_cast<int64_t>(owner) * rows_of_team + __ffs(rows) - 1;
          const int32_t begin = __ldg(a.indptr + row), end = __ldg(a.indptr + row + 1);
          const int64_t edges = end - begin;
          for (int part = team; part < kWarpParts; part += teams) {
            const bool self = part == 0 && with_self(a, row);
            auto sum = summer.begin(row, self, self ? self_weight(a, row) : Real(1));
            const auto low = static_cast<int32_t>(begin + edges * part / kWarpParts);
            const auto high = static_cast<int32_t>(begin + edges * (part + 1) / kWarpParts);
            summer.add(sum, low, high, high);
            parts.put(summer, part, sum);
          }
          __syncthreads();
          if (team == 0) {
            auto sum = parts.joined(summer);
            summer.store(sum, row, end - begin);
          }
          __syncthreads();
        }
      }
    }
  }
  assert(summer.valid && "gnnbench aggregate: an index is outside the block");
}

// A team per piece.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
__global__ void __launch_bounds__(kWarpThreads)
    warp_pieces_kernel(const RowSums<T> a, const WarpPieces<T> pieces, int lanes_log2,
                       StagedTile tile) {
  using Real = Sum<T>;
  extern __shared__ double staged[];
  StagedSummer<T, kWidth, kPacks, kWeighing> summer(a, lanes_log2, tile, staged);
  const int teams = static_cast<int>(blockDim.x) >> lanes_log2;
  const int64_t all = static_cast<int64_t>(gridDim.x) * teams, count = __ldg(pieces.counts);
  const int team = static_cast<int>(threadIdx.x) >> lanes_log2;
  for (int64_t p = static_cast<int64_t>(blockIdx.x) * teams + team; p < count; p += all) {
    const int32_t row = __ldg(pieces.row + p), begin = __ldg(pieces.begin + p);
    const int32_t last = __ldg(a.indptr + row + 1);
    const int32_t end = last - begin < pieces.edges ? last : begin + pieces.edges;
    const bool self = begin == __ldg(a.indptr + row) && with_self(a, row);
    auto sum = summer.begin(row, self, self ? self_weight(a, row) : Real(1));
    summer.add(sum, begin, end, end);
    summer.keep(sum, pieces.sums, p);
  }
  assert(summer.valid && "gnnbench aggregate: an index is outside the block");
}

// A block per long row: its teams add kWarpParts parts of the pieces.
template <class T, int kWidth, int kPacks>
__global__ void __launch_bounds__(kWarpThreads)
    warp_join_kernel(const RowSums<T> a, const WarpPieces<T> pieces, int lanes_log2) {
  using Summer = StagedSummer<T, kWidth, kPacks, Weighing::kNone>;
  __shared__ StagedParts<Summer> parts;
  const Summer summer(a, lanes_log2, StagedTile{}, nullptr);
  const int teams = static_cast<int>(blockDim.x) >> lanes_log2;
  const int team = static_cast<int>(threadIdx.x) >> lanes_log2;
  const int32_t count = __ldg(pieces.counts + 1);
  for (int32_t i = static_cast<int32_t>(blockIdx.x); i < count; i += gridDim.x) {
    const int32_t row = __ldg(pieces.long_row + i);
    const int32_t degree = __ldg(a.indptr + row + 1) - __ldg(a.indptr + row);
    const int64_t first = __ldg(pieces.first_piece + i);
    const int64_t number = number_of_pieces(degree, pieces.edges);
    for (int part = team; part < kWarpParts; part += teams) {
      typename Summer::Partial sum = {};
      const int64_t end = first + number * (part + 1) / kWarpParts;
#pragma unroll 4
      for (int64_t p = first + number * part / kWarpParts; p < end; ++p) {
        summer.add_kept(sum, pieces.sums, p);
      }
      parts.put(summer, part, sum);
    }
    __syncthreads();
    if (team == 0) {
      auto sum = parts.joined(summer);
      summer.store(sum, row, degree);
    }
    __syncthreads();
  }
}

// Grid, block and tile of a launch.
struct WarpLayout {
  int lanes_log2, rows;
  StagedTile tile;
  dim3 grid, block;
  size_t bytes;
};

template <class T, int kWidth, int kPacks, Weighing kWeighing>
WarpLayout warp_layout(const RowSums<T>& sums, WarpShape shape) {
  constexpr int kColumns = kWidth * kPacks;
  WarpLayout found{};
  found.lanes_log2 = 3;
  while (found.lanes_log2 < 5 && (int64_t{kColumns} << found.lanes_log2) < sums.dim &&
         (kColumns << found.lanes_log2) < shape.columns) {
    ++found.lanes_log2;
  }
  const int64_t columns = int64_t{kColumns} << found.lanes_log2;
  const int64_t slices = blocks_for(sums.dim, columns);
  const int teams = shape.warps * 32 >> found.lanes_log2;
  const int64_t most = (sums.num_rows * slices << found.lanes_log2) / kWarpFull;
  found.rows = most < 1 ? 1 : most < shape.rows ? static_cast<int>(most) : shape.rows;
  found.tile = {kWarpTile, kWeighing == Weighing::kNone ? 0 : 1};
  if (kWeighing == Weighing::kHead) {
    const int64_t width = sums.dim / sums.heads, met = (columns + width - 2) / width + 1;
    found.tile.weights = static_cast<int>(met < sums.heads ? met : sums.heads);
  }
  const auto bytes = [&] { return teams * staged_bytes<Sum<T>>(found.tile); };
  while (found.tile.edges > kStagedEdges && bytes() > kWarpSharedBytes) found.tile.edges /= 2;
  found.bytes = static_cast<size_t>(bytes());
  found.grid = dim3(static_cast<unsigned>(blocks_for(sums.num_rows, int64_t{teams} * found.rows)),
                    static_cast<unsigned>(slices));
  found.block = dim3(static_cast<unsigned>(shape.warps) * 32);
  return found;
}

// Calls f<width of a pack, packs per lane, weighing>(): a vector of 16 bytes per lane, or two
// narrower ones. A pack must lie within one head.
template <class T, class F>
void by_warp_layout(const RowSums<T>& sums, const F& f) {
  constexpr int kSize = sizeof(T);
  by_weighing(sums, [&]<Weighing kWeighing>() {
    const int bytes = pack_bytes<T>(sums.x, sums.out, sums.dim / sums.heads);
    if (bytes == 16) {
      f.template operator()<16 / kSize, 1, kWeighing>();
    } else if (bytes == 8) {
      f.template operator()<8 / kSize, 2, kWeighing>();
    } else if constexpr (kSize <= 4) {
      if (bytes == 4) {
        f.template operator()<4 / kSize, 2, kWeighing>();
      } else if constexpr (kSize == 2) {
        f.template operator()<1, 2, kWeighing>();
      }
    }
  });
}

template <class T>
void memory_aware_warp(Launch launch, const RowSums<T>& sums, WarpShape shape) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  by_warp_layout(sums, [&]<int kWidth, int kPacks, Weighing kWeighing>() {
    const WarpLayout w = warp_layout<T, kWidth, kPacks, kWeighing>(sums, shape);
    const WarpPieces<T> none{};
    memory_aware_warp_kernel<T, kWidth, kPacks, kWeighing, false>
        <<<w.grid, w.block, w.bytes, launch.stream>>>(sums, none, w.lanes_log2, w.rows, w.tile);
    GNNBENCH_CUDA_LAUNCHED(launch, "memory_aware_warp_kernel");
  });
}

template <class T>
void memory_aware_warp_transposed(Launch launch, const RowSums<T>& sums, WarpShape shape,
                                  const WarpPieces<T>& pieces) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  const int64_t most_pieces = warp_pieces(sums.num_edges);
  const int64_t most_rows = warp_long_rows(sums.num_edges);
  by_warp_layout(sums, [&]<int kWidth, int kPacks, Weighing kWeighing>() {
    const WarpLayout w = warp_layout<T, kWidth, kPacks, kWeighing>(sums, shape);
    memory_aware_warp_kernel<T, kWidth, kPacks, kWeighing, true>
        <<<w.grid, w.block, w.bytes, launch.stream>>>(sums, pieces, w.lanes_log2, w.rows, w.tile);
    GNNBENCH_CUDA_LAUNCHED(launch, "memory_aware_warp_kernel");
    if (most_rows == 0) return;
    const int64_t teams = shape.warps * 32 >> w.lanes_log2;
    const int64_t blocks = blocks_for(most_pieces, teams);
    const dim3 piece_grid(
        static_cast<unsigned>(blocks < kWarpListBlocks ? blocks : kWarpListBlocks), w.grid.y);
    warp_pieces_kernel<T, kWidth, kPacks, kWeighing>
        <<<piece_grid, w.block, w.bytes, launch.stream>>>(sums, pieces, w.lanes_log2, w.tile);
    GNNBENCH_CUDA_LAUNCHED(launch, "warp_pieces_kernel");
    const dim3 join_grid(
        static_cast<unsigned>(most_rows < kWarpListBlocks ? most_rows : kWarpListBlocks), w.grid.y);
    warp_join_kernel<T, kWidth, kPacks>
        <<<join_grid, w.block, 0, launch.stream>>>(sums, pieces, w.lanes_log2);
    GNNBENCH_CUDA_LAUNCHED(launch, "warp_join_kernel");
  });
}

}  // namespace gnnbench::cuda
