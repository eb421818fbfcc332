// The kernels of spread_rows.h; a source file for each dtype instantiates them.
#pragma once

#include "cuda/aggregate/row_summer.cuh"
#include "cuda/aggregate/spread_rows.h"

namespace gnnbench::cuda {

constexpr int kManyPieces = 32;  // more of a row are added up by a block

// Edges asked for at once: at most 32 registers of a lane.
template <class T, int kWidth, int kPacks>
constexpr int kSpreadEdges = kWidth * kPacks * sizeof(T) > 16 ? kTunedEdges / 2 : kTunedEdges;

// The last row that begins at item `at` or before, by a group of lanes: each looks at the begin of
// one part of what is left. -1 where there is none.
__device__ __forceinline__ int32_t row_at(const int32_t* indptr, int64_t num_rows, int64_t at,
                                          int lane, int lanes, unsigned mask) {
  int64_t low = 0, left = num_rows;
  for (;;) {
    const int64_t part = (left + lanes - 1) / lanes, mine = part * lane;
    const bool before = mine < left && __ldg(indptr + low + mine) + low + mine <= at;
    const int found = __popc(__ballot_sync(mask, before));
    if (found == 0) return -1;
    const int64_t skipped = part * (found - 1);
    low += skipped;
    if (part == 1) return static_cast<int32_t>(low);
    left = left - skipped < part ? left - skipped : part;
  }
}

// A lane's part of a pack's sum that is kept in memory, at most 16 bytes at once.
template <class Real, int kWidth>
struct Kept {
  static constexpr int kAtOnce = kWidth * sizeof(Real) <= 16 ? kWidth : 16 / sizeof(Real);
  using Word = typename Elements<Real, kAtOnce>::Word;

  __device__ __forceinline__ static void store(Real* to, const Real (&value)[kWidth]) {
#pragma unroll
    for (int i = 0; i < kWidth; i += kAtOnce) {
      Elements<Real, kAtOnce> part;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) part.value[k] = value[i + k];
      *reinterpret_cast<Word*>(to + i) = part.word;
    }
  }

  __device__ __forceinline__ static void load(const Real* from, Real (&value)[kWidth]) {
#pragma unroll
    for (int i = 0; i < kWidth; i += kAtOnce) {
      Elements<Real, kAtOnce> part;
      part.word = __ldg(reinterpret_cast<const Word*>(from + i));
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) value[i + k] = part.value[k];
    }
  }
};

// All offsets, by all threads of the first cut.
template <class T>
__device__ __forceinline__ void check_offsets(const RowSums<T>& a) {
  if (blockIdx.y != 0) return;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kTunedThreads;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kTunedThreads + threadIdx.x;
       row < a.num_rows; row += threads) {
    const int32_t begin = __ldg(a.indptr + row), end = __ldg(a.indptr + row + 1);
    assert(begin >= 0 && begin <= end && end <= a.num_edges &&
           "gnnbench aggregate: indptr is broken");
  }
}

// Blocks that a multiprocessor is to hold: what a compiler takes beyond their registers it spills.
template <class T, Weighing kWeighing>
constexpr int kSpreadBlocks = kWeighing == Weighing::kNone && sizeof(T) == 4 ? 3 : 2;

// A group a chunk.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
__global__ void __launch_bounds__(kTunedThreads, (kSpreadBlocks<T, kWeighing>))
    spread_rows_kernel(const RowSums<T> a, const RowPieces<T> pieces, int64_t items,
                       int lanes_log2) {
  using Summer = RowSummer<T, kWidth, kPacks, kWeighing>;
  using Real = Sum<T>;
  constexpr int kEdges = kSpreadEdges<T, kWidth, kPacks>;
  constexpr int32_t kNever = INT32_MAX;
  check_offsets(a);
  Summer summer(a, lanes_log2);
  const int lane = summer.lane, lanes = summer.lanes;
  const int group = static_cast<int>(threadIdx.x) >> lanes_log2;
  const int64_t chunk = (static_cast<int64_t>(blockIdx.x) * kTunedThreads >> lanes_log2) + group;
  const int64_t low = chunk * items, high = low + items;  // in the line of rows and edges
  const auto begin_row = [&](int64_t row) {
    const bool self = with_self(a, row);
    const bool weighs = self && kWeighing == Weighing::kEdge;
    auto sum = summer.begin(row, self, weighs ? self_weight(a, row) : Real(1));
    summer.settle(sum);
    return sum;
  };

  if (low < a.num_edges + a.num_rows) {
    int64_t base = 0;  // the next row
    // Of a long row's piece: its edges, and whether the row begins and ends in it.
    bool piece = false, first = false, last = false;
    int32_t degree = 0, e = 0, stop = 0;
    const int32_t found = row_at(a.indptr, a.num_rows, low, lane, lanes, summer.mask);
    if (found >= 0) {
      const int32_t begin = __ldg(a.indptr + found), end = __ldg(a.indptr + found + 1);
      const int64_t own = static_cast<int64_t>(begin) + found;  // its item
      const int64_t behind = static_cast<int64_t>(end) + found + 1;
      degree = end - begin;
      piece = degree > items && low < behind && begin >= 0 && end <= a.num_edges;
      first = own > low - items;
      last = behind <= high;
      e = first ? begin : static_cast<int32_t>(low - found - 1);
      stop = last ? end : static_cast<int32_t>(high - found - 1);
      base = !piece && own == low ? found : found + 1;
    }
    if (pieces.rows != nullptr && lane == 0 && blockIdx.y == 0) {
      pieces.rows[chunk] = piece ? found : -1;
    }
    for (;;) {
      int rows = 1;           // of this turn
      int32_t next = kNever;  // where row base + lane ends
      int32_t begun = e;
      if (!piece) {
        int32_t offset = 0;
        bool whole = false;  // whether row base + lane begins in the chunk, and is not long
        if (base + lane < a.num_rows) {
          offset = __ldg(a.indptr + base + lane);
          next = __ldg(a.indptr + base + lane + 1);
          whole = offset + base + lane < high && next - offset <= items;
        }
        rows = __popc(__ballot_sync(summer.mask, whole));
        if (rows == 0) break;
        e = begun = summer.from_lane(offset, 0);
        stop = summer.from_lane(next, rows - 1);
        if (e < 0 || stop > a.num_edges) break;  // asserted above
      }
      int r = 0;
      int32_t end = piece ? kNever : summer.from_lane(next, 0);
      const int64_t row = piece ? found : base;
      auto sum = piece && !first ? typename Summer::Partial{} : begin_row(row);
      const auto finish = [&] {
        summer.store(sum, row + r, end - begun);
        begun = end;
        if (++r == rows) return;
        end = summer.from_lane(next, r);
        sum = begin_row(row + r);
      };
      if (e < stop) summer.fill(e, stop);
      for (int32_t n = 0; e < stop; e += n) {
        n = stop - e < kEdges ? stop - e : kEdges;
        typename Summer::template Batch<kEdges> batch;
        summer.ask(batch, e - summer.window.base, n);
        // The next columns are on their way while this batch is.
        const int32_t after = e + n;
        if (after < stop && after - summer.window.base >= summer.window.filled) {
          summer.fill(after, stop);
        }
#pragma unroll
        for (int k = 0; k < kEdges; ++k) {
          if (k >= n) break;
          while (e + k == end && r < rows) finish();
          summer.take(sum, batch, k);
        }
      }
      if (!piece) {
        while (r < rows) finish();
        base += rows;
        if (rows < lanes) break;
        continue;
      }
      piece = false;
      sum.pending = 1;
      if (first && last) {
        summer.store(sum, row, degree);
        continue;
      }
      if (lane == 0 && blockIdx.y == 0) pieces.totals[chunk] = sum.total;
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (summer.pack[j] >= summer.packs) continue;
        Kept<Real, kWidth>::store(pieces.values + (chunk * summer.packs + summer.pack[j]) * kWidth,
                                  sum.value[j]);
      }
    }
  }
  assert(summer.sound && "gnnbench aggregate: an index is outside the block");
}

// Adds pieces [begin, end) in their order.
template <class Summer, class T>
__device__ __forceinline__ void add_pieces(const Summer& summer, const RowPieces<T>& pieces,
                                           int64_t begin, int64_t end,
                                           typename Summer::Partial& sum) {
  using Real = Sum<T>;
  constexpr int kPacks = Summer::kOwnPacks, kWidth = Summer::kPackWidth;
  constexpr int kWords = kWidth * kPacks * sizeof(Real) / 4;
  constexpr int kAtOnce = kWords > 8 ? 1 : kWords > 4 ? 2 : 4;  // most rows have two or three
  for (int64_t p = begin; p < end; p += kAtOnce) {
    Real term[kAtOnce][kPacks][kWidth] = {};
    Real total[kAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (p + k >= end) continue;
      total[k] = __ldg(pieces.totals + p + k);
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (summer.pack[j] >= summer.packs) continue;
        Kept<Real, kWidth>::load(pieces.values + ((p + k) * summer.packs + summer.pack[j]) * kWidth,
                                 term[k][j]);
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      sum.total += total[k];
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum.value[j][i] += term[k][j][i];
      }
    }
  }
}

// A group for a row's first piece, which adds up the row's; of more than kManyPieces the groups of
// the block each a part.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
__global__ void __launch_bounds__(kTunedThreads)
    join_pieces_kernel(const RowSums<T> a, const RowPieces<T> pieces, int64_t chunks, int64_t items,
                       int lanes_log2) {
  using Summer = RowSummer<T, kWidth, kPacks, kWeighing>;
  __shared__ int32_t many_rows[kTunedMostGroups];
  __shared__ GroupSums<Sum<T>, kWidth> shared;

  const Summer summer(a, lanes_log2);
  const int groups = kTunedThreads >> lanes_log2;
  const int group = static_cast<int>(threadIdx.x) >> lanes_log2;
  const int64_t block_chunk = static_cast<int64_t>(blockIdx.x) * groups;
  const int64_t chunk = block_chunk + group;
  const auto degree_of = [&](int32_t row) {
    return __ldg(a.indptr + row + 1) - __ldg(a.indptr + row);
  };
  const auto behind = [&](int32_t row) {  // the chunks that it reaches into
    return (static_cast<int64_t>(__ldg(a.indptr + row + 1)) + row) / items + 1;
  };

  int32_t row = chunk < chunks ? __ldg(pieces.rows + chunk) : -1;
  if (row >= 0 && chunk > 0 && __ldg(pieces.rows + chunk - 1) == row) row = -1;  // not its first
  const int64_t number = row >= 0 ? behind(row) - chunk : 0;
  if (number > 1 && number <= kManyPieces) {  // a row of a single piece is done
    typename Summer::Partial sum = {};
    sum.pending = 1;
    add_pieces<Summer, T>(summer, pieces, chunk, chunk + number, sum);
    summer.store(sum, row, degree_of(row));
  }
  const bool many = number > kManyPieces;
  if (!__syncthreads_or(many)) return;
  if (summer.lane == 0) many_rows[group] = many ? row : -1;
  __syncthreads();
  for (int owner = 0; owner < groups; ++owner) {
    const int32_t hub = many_rows[owner];
    if (hub < 0) continue;
    const int64_t begun = block_chunk + owner, pieces_of = behind(hub) - begun;
    typename Summer::Partial sum = {};
    sum.pending = 1;
    add_pieces<Summer, T>(summer, pieces, begun + pieces_of * group / groups,
                          begun + pieces_of * (group + 1) / groups, sum);
    summer.join(sum, shared, group, groups);
    if (group == 0) summer.store(sum, hub, degree_of(hub));
  }
}

template <class T>
void spread_row_sums(Launch launch, const RowSums<T>& sums, const RowPieces<T>& pieces) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  const int64_t items = chunk_items(sums.num_edges, sums.num_rows);
  const int64_t chunks = num_chunks(sums.num_edges, sums.num_rows);
  by_layout(sums, [&]<int kWidth, int kPacks, Weighing kWeighing>() {
    const int64_t packs = sums.dim / kWidth;
    const int lanes_log2 = group_lanes_log2(packs);
    const dim3 grid(static_cast<unsigned>(blocks_for(chunks, kTunedThreads >> lanes_log2)),
                    static_cast<unsigned>(blocks_for(packs, int64_t{kPacks} << lanes_log2)));
    spread_rows_kernel<T, kWidth, kPacks, kWeighing>
        <<<grid, kTunedThreads, 0, launch.stream>>>(sums, pieces, items, lanes_log2);
    GNNBENCH_CUDA_LAUNCHED(launch, "spread_rows_kernel");
    if (!needs_pieces(sums.num_edges, sums.num_rows)) return;
    // What an edge weighs in a head is in its piece's sum.
    constexpr Weighing kTotal = kWeighing == Weighing::kHead ? Weighing::kNone : kWeighing;
    join_pieces_kernel<T, kWidth, kPacks, kTotal>
        <<<grid, kTunedThreads, 0, launch.stream>>>(sums, pieces, chunks, items, lanes_log2);
    GNNBENCH_CUDA_LAUNCHED(launch, "join_pieces_kernel");
  });
}

}  // namespace gnnbench::cuda
