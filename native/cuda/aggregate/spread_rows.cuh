// The kernels of spread_rows.h; one source file per dtype instantiates them.
#pragma once

#include "cuda/aggregate/pack.cuh"
#include "cuda/aggregate/spread_items.cuh"
#include "cuda/aggregate/spread_rows.h"
#include "cuda/aggregate/sum_layout.cuh"

namespace gnnbench::cuda {

constexpr int kSpreadThreads = 256;
constexpr int kManyPieces = 32;  // a block adds up more pieces of one row
constexpr int kParts = kSpreadThreads / 32;

// Items loaded at once: at most 40 registers per lane.
template <class T, int kWidth, int kPacks>
constexpr int kSpreadAsked = kWidth * kPacks * sizeof(T) <= 20   ? 8
                             : kWidth * kPacks * sizeof(T) <= 40 ? 4
                                                                 : 2;

// A lane's packs of a row.
template <int kWidth, int kPacks>
struct OwnPacks {
  static constexpr int kPackWidth = kWidth, kOwnPacks = kPacks;
  uint32_t packs;  // per row; 32 bits make an address one multiplication
  uint32_t pack[kPacks];

  __device__ __forceinline__ OwnPacks(const LaneGroup& group, int64_t dim)
      : packs(static_cast<uint32_t>(dim / kWidth)) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      pack[j] = (blockIdx.y * kPacks + j) * static_cast<uint32_t>(group.lanes) +
                static_cast<uint32_t>(group.lane);
    }
  }
  __device__ __forceinline__ bool has(int j) const { return pack[j] < packs; }
  // Offset of a pack of a row.
  __device__ __forceinline__ int64_t place(uint32_t row, int j) const {
    return static_cast<int64_t>(uint64_t{row} * packs + pack[j]);
  }
};

template <class Real, int kWidth, int kPacks>
struct RowSum {
  Real value[kPacks][kWidth] = {};

  template <class T>
  __device__ __forceinline__ void store(const OwnPacks<kWidth, kPacks>& own, T* out, int64_t row) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (own.has(j)) {
        store_pack<T, kWidth>(out, own.place(static_cast<uint32_t>(row), j), value[j]);
      }
    }
  }

  // Stores the sum unrounded and without its final factor.
  __device__ __forceinline__ void keep(const OwnPacks<kWidth, kPacks>& own, Real* kept,
                                       int64_t chunk) const {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      Real* const to = kept + own.place(static_cast<uint32_t>(chunk), j) * kWidth;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (own.has(j)) to[i] = value[j][i];
      }
    }
  }

  __device__ __forceinline__ void add_kept(const OwnPacks<kWidth, kPacks>& own, const Real* kept,
                                           int64_t chunk) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const Real* const from = kept + own.place(static_cast<uint32_t>(chunk), j) * kWidth;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (own.has(j)) value[j][i] += __ldg(from + i);
      }
    }
  }
};

// Validates all offsets; called by all threads of the first column slice.
template <class T>
__device__ __forceinline__ void check_offsets(const RowSums<T>& a) {
  if (blockIdx.y != 0) return;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kSpreadThreads;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kSpreadThreads + threadIdx.x;
       row < a.num_rows; row += threads) {
    const int32_t begin = __ldg(a.indptr + row), end = __ldg(a.indptr + row + 1);
    assert(begin >= 0 && begin <= end && end <= a.num_edges &&
           "gnnbench aggregate: indptr is broken");
  }
}

// Resident blocks per multiprocessor. The compiler spills registers beyond this limit.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
constexpr int kSpreadBlocks =
    kWeighing == Weighing::kHead || kWidth * kPacks > 8 || kPacks > 4 ? 2 : 3;

// One group per chunk.
template <class T, int kWidth, int kPacks, Weighing kWeighing>
__global__ void __launch_bounds__(kSpreadThreads, (kSpreadBlocks<T, kWidth, kPacks, kWeighing>))
    spread_rows_kernel(const RowSums<T> a, const RowPieces<T> pieces, int64_t items,
                       int lanes_log2) {
  using Real = Sum<T>;
  constexpr int kAsked = kSpreadAsked<T, kWidth, kPacks>;
  check_offsets(a);
  const LaneGroup group(lanes_log2);
  const OwnPacks<kWidth, kPacks> own(group, a.dim);
  const auto heads = static_cast<uint32_t>(a.heads);
  uint32_t head[kPacks];
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    head[j] = kWeighing == Weighing::kHead && own.has(j)
                  ? static_cast<uint32_t>(own.pack[j] * kWidth / (a.dim / a.heads))
                  : 0;
  }
  const int64_t chunk = (static_cast<int64_t>(blockIdx.x) * kSpreadThreads >> lanes_log2) +
                        (static_cast<int>(threadIdx.x) >> lanes_log2);
  const int64_t begin = chunk * items;
  const int64_t behind = static_cast<int64_t>(__ldg(a.indptr + a.num_rows)) + a.num_rows;
  const bool in_line = begin < a.num_edges + a.num_rows;  // whether the chunk exists
  if (in_line && begin >= behind && pieces.rows != nullptr && group.lane == 0 && blockIdx.y == 0) {
    pieces.rows[chunk] = -1;
  }
  bool valid = true;

  if (begin < behind) {
    const auto low = static_cast<uint32_t>(begin);
    const auto high = static_cast<uint32_t>(begin + items < behind ? begin + items : behind);
    const auto offset_of = [&](int32_t row) {
      return row + group.lane < a.num_rows ? __ldg(a.indptr + row + group.lane) : 0;
    };
    const int32_t last = row_at(group, a.indptr, a.num_rows, begin);
    const bool at_begin = last >= 0 && __ldg(a.indptr + last) + int64_t{last} == begin;
    int32_t next = at_begin ? last : last + 1;  // the next row to begin
    Items<T, kWeighing> now, then;
    now.find(a, group, low, high, next, offset_of(next));
    now.weigh(a, group);
    next += __popc(now.begins);
    int32_t offset = offset_of(next);
    int32_t row = -1;  // of the current sum; -1 if the row began in an earlier chunk
    RowSum<Real, kWidth, kPacks> sum;

    for (uint32_t first = low; first < high; first += static_cast<uint32_t>(group.lanes)) {
      valid = valid && now.valid;
      then.find(a, group, first + group.lanes, high, next, offset);
      const int32_t after = next + __popc(then.begins);
      offset = offset_of(after);
      int32_t begun = now.row;
      for (int at = 0; at < group.lanes; at += kAsked) {
        Elements<T, kWidth> term[kAsked][kPacks];
        [[maybe_unused]] Real weight[kAsked][kPacks];
#pragma unroll
        for (int k = 0; k < kAsked; ++k) {
          const auto column = static_cast<uint32_t>(group.from(now.column, at + k));
          [[maybe_unused]] uint32_t edge = 0;
          if (kWeighing == Weighing::kHead) {
            edge = static_cast<uint32_t>(group.from(now.edge, at + k));
          }
          const bool adds = (now.adds >> (at + k) & 1u) != 0;
#pragma unroll
          for (int j = 0; j < kPacks; ++j) {
            if (!adds || !own.has(j)) continue;
            term[k][j] = load_pack<T, kWidth>(a.x, own.place(column, j));
            if (kWeighing == Weighing::kHead) {
              weight[k][j] = __ldg(a.weights + uint64_t{edge} * heads + head[j]);
            }
          }
        }
        if (at == 0) then.weigh(a, group);
#pragma unroll
        for (int k = 0; k < kAsked; ++k) {
          if ((now.begins >> (at + k) & 1u) != 0) {
            if (row >= 0) {
              sum.store(own, a.out, row);
            } else if (pieces.rows != nullptr) {
              sum.keep(own, pieces.reached, chunk);
            }
            row = begun++;
            sum = {};
          }
          [[maybe_unused]] Real shared = 1;
          if (kWeighing == Weighing::kEdge) shared = group.from(now.weight, at + k);
          if ((now.adds >> (at + k) & 1u) == 0) continue;  // the item adds nothing
#pragma unroll
          for (int j = 0; j < kPacks; ++j) {
#pragma unroll
            for (int i = 0; i < kWidth; ++i) {
              const Real value = to_sum(term[k][j].value[i]);
              if (kWeighing == Weighing::kNone) sum.value[j][i] += value;
              if (kWeighing == Weighing::kEdge) sum.value[j][i] += shared * value;
              if (kWeighing == Weighing::kHead) sum.value[j][i] += weight[k][j] * value;
            }
          }
        }
      }
      now = then;
      next = after;
    }

    // `next` may belong to a window behind the chunk, so read the last row's end from its offset.
    const bool whole =
        row >= 0 && static_cast<int64_t>(__ldg(a.indptr + row + 1)) + row + 1 <= high;
    if (whole) {
      sum.store(own, a.out, row);
    } else if (pieces.rows != nullptr) {
      sum.keep(own, row >= 0 ? pieces.begun : pieces.reached, chunk);
    }
    if (pieces.rows != nullptr && group.lane == 0 && blockIdx.y == 0) {
      pieces.rows[chunk] = whole ? -1 : row;
    }
  }
  assert(valid && "gnnbench aggregate: an index is outside the block");
}

// One group per split row. For more than kManyPieces pieces, kParts groups of the block add up one
// part each. kParts does not depend on the lanes of a group, so sums do not depend on the alignment
// of x.
template <class T, int kWidth, int kPacks>
__global__ void __launch_bounds__(kSpreadThreads)
    join_pieces_kernel(const RowSums<T> a, const RowPieces<T> pieces, int64_t chunks, int64_t items,
                       int lanes_log2) {
  using Real = Sum<T>;
  __shared__ int32_t many_rows[kSpreadThreads / 8];
  __shared__ Real shared[kSpreadThreads * kWidth];

  const LaneGroup group(lanes_log2);
  const OwnPacks<kWidth, kPacks> own(group, a.dim);
  const int groups = kSpreadThreads >> lanes_log2;
  const int number = static_cast<int>(threadIdx.x) >> lanes_log2;
  const int64_t block_chunk = static_cast<int64_t>(blockIdx.x) * groups;
  const int64_t chunk = block_chunk + number;
  const auto last_chunk = [&](int32_t row) {  // chunk of its last edge
    return (static_cast<int64_t>(__ldg(a.indptr + row + 1)) + row) / items;
  };

  const int32_t row = chunk < chunks ? __ldg(pieces.rows + chunk) : -1;
  const int64_t last = row >= 0 ? last_chunk(row) : 0;
  const bool many = row >= 0 && last - chunk > kManyPieces;
  if (row >= 0 && !many) {
    RowSum<Real, kWidth, kPacks> sum;
    sum.add_kept(own, pieces.begun, chunk);
    for (int64_t c = chunk + 1; c <= last; ++c) sum.add_kept(own, pieces.reached, c);
    sum.store(own, a.out, row);
  }
  if (!__syncthreads_or(many)) return;
  if (group.lane == 0) many_rows[number] = many ? row : -1;
  __syncthreads();
  for (int owner = 0; owner < groups; ++owner) {
    const int32_t hub = many_rows[owner];
    if (hub < 0) continue;
    const int64_t begun = block_chunk + owner, reached = last_chunk(hub) - begun;
    RowSum<Real, kWidth, kPacks> sum;
    if (number == 0) sum.add_kept(own, pieces.begun, begun);
    const int64_t end = number < kParts ? begun + 1 + reached * (number + 1) / kParts : 0;
    for (int64_t c = begun + 1 + reached * number / kParts; c < end; ++c) {
      sum.add_kept(own, pieces.reached, c);
    }
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) shared[threadIdx.x * kWidth + i] = sum.value[j][i];
      __syncthreads();
      for (int g = 1; number == 0 && g < kParts; ++g) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          sum.value[j][i] += shared[(g * group.lanes + group.lane) * kWidth + i];
        }
      }
      __syncthreads();
    }
    if (number == 0) sum.store(own, a.out, hub);
  }
}

template <class T>
void spread_row_sums(Launch launch, const RowSums<T>& sums, const RowPieces<T>& pieces) {
  if (sums.num_rows == 0 || sums.dim == 0) return;
  const int64_t items = chunk_items(sums.num_edges, sums.num_rows);
  const int64_t chunks = num_chunks(sums.num_edges, sums.num_rows);
  by_layout<4>(sums, [&]<int kWidth, int kPacks, Weighing kWeighing>() {
    const int64_t packs = sums.dim / kWidth;
    const int lanes_log2 = group_lanes_log2(packs);
    const dim3 grid(static_cast<unsigned>(blocks_for(chunks, kSpreadThreads >> lanes_log2)),
                    static_cast<unsigned>(blocks_for(packs, int64_t{kPacks} << lanes_log2)));
    spread_rows_kernel<T, kWidth, kPacks, kWeighing>
        <<<grid, kSpreadThreads, 0, launch.stream>>>(sums, pieces, items, lanes_log2);
    GNNBENCH_CUDA_LAUNCHED(launch, "spread_rows_kernel");
    if (chunks == 1) return;
    join_pieces_kernel<T, kWidth, kPacks>
        <<<grid, kSpreadThreads, 0, launch.stream>>>(sums, pieces, chunks, items, lanes_log2);
    GNNBENCH_CUDA_LAUNCHED(launch, "join_pieces_kernel");
  });
}

}  // namespace gnnbench::cuda
