// A window of the sequence of rows and edges that spread_rows.h defines.
#pragma once

#include "cuda/aggregate/row_sums.cuh"
#include "cuda/aggregate/sum_layout.cuh"

namespace gnnbench::cuda {

// Lanes that process a chunk together.
struct LaneGroup {
  int lanes, lane;
  unsigned mask;  // within the warp
  int shift;      // of the group's first lane

  __device__ __forceinline__ explicit LaneGroup(int lanes_log2) : lanes(1 << lanes_log2) {
    const int within = static_cast<int>(threadIdx.x) & 31;
    lane = within & (lanes - 1);
    shift = within - lane;
    mask = lanes == 32 ? 0xffffffffu : ((1u << lanes) - 1) << shift;
  }

  template <class V>
  __device__ __forceinline__ V from(V value, int source) const {
    return __shfl_sync(mask, value, source, lanes);
  }

  // One bit per lane of the group.
  __device__ __forceinline__ unsigned ballot(bool predicate) const {
    return (__ballot_sync(mask, predicate) & mask) >> shift;
  }

  __device__ __forceinline__ unsigned any_bits(unsigned bits) const {
    for (int other = lanes / 2; other > 0; other /= 2) {
      bits |= __shfl_xor_sync(mask, bits, other, lanes);
    }
    return bits;
  }
};

// The last row that begins at or before item `at`, or -1. A parallel search: each lane reads the
// begin of one part of the remaining range.
__device__ __forceinline__ int32_t row_at(const LaneGroup& group, const int32_t* indptr,
                                          int64_t num_rows, int64_t at) {
  int64_t low = 0, left = num_rows;
  for (;;) {
    const int64_t part = (left + group.lanes - 1) / group.lanes, mine = part * group.lane;
    const bool before = mine < left && __ldg(indptr + low + mine) + low + mine <= at;
    const int found = __popc(group.ballot(before));
    if (found == 0) return -1;
    const int64_t skipped = part * (found - 1);
    low += skipped;
    if (part == 1) return static_cast<int32_t>(low);
    left = left - skipped < part ? left - skipped : part;
  }
}

// Items of a window; for each lane its column, edge and weight.
template <class T, Weighing kWeighing>
struct Items {
  unsigned begins = 0;  // one bit per item: a row begins
  unsigned adds = 0;    // one bit per item: the item adds a term
  int32_t row = 0;      // of the first item in the window that begins a row
  int32_t column = 0, edge = 0;
  Sum<T> weight = 1;
  bool own = false;  // the lane's item is a row's own term
  bool valid = true;

  // A sequence has fewer than 2^32 items. Items [first, first + lanes) below `end`; `offset` is
  // where row `row` + lane begins, if it exists.
  __device__ __forceinline__ void find(const RowSums<T>& a, const LaneGroup& group, uint32_t first,
                                       uint32_t end, int32_t next_row, int32_t offset) {
    row = next_row;
    const int32_t lane_row = row + group.lane;
    const uint32_t place = static_cast<uint32_t>(offset) + static_cast<uint32_t>(lane_row) - first;
    const bool here = lane_row < a.num_rows && place < static_cast<uint32_t>(group.lanes);
    begins = group.any_bits(here ? 1u << place : 0u);
    const uint32_t item = first + static_cast<uint32_t>(group.lane);
    const int32_t own_row = row - 1 + __popc(begins & (2u << group.lane) - 1);
    const bool begun = (begins >> group.lane & 1u) != 0;
    own = begun && with_self(a, own_row);
    const uint32_t e = item - static_cast<uint32_t>(own_row) - 1;
    const bool is_edge = !begun && own_row >= 0 && e < static_cast<uint32_t>(a.num_edges);
    const bool add = item < end && (own || is_edge);
    column = 0;
    edge = 0;
    valid = true;
    if (add && is_edge) {
      column = column_of(a, e);
      if (kWeighing != Weighing::kNone) edge = edge_of(a, e);
    }
    if (add && own) column = own_row;
    adds = group.ballot(add);
  }

  // Computes what depends on the columns. Called later than `find`, when they have arrived. A
  // column outside the block becomes column 0 and clears `valid`.
  __device__ __forceinline__ void weigh(const RowSums<T>& a, const LaneGroup& group) {
    if ((adds >> group.lane & 1u) == 0) return;
    valid = column >= 0 && column < a.num_columns;
    column = valid ? column : 0;
    if (kWeighing != Weighing::kEdge) return;
    weight = own ? self_weight(a, column) : weight_of(a, edge, column);
  }
};

}  // namespace gnnbench::cuda
