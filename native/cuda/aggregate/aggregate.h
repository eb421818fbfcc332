// Aggregation over a block, forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/launch.h"
#include "gnnbench/aggregate.h"

namespace gnnbench::cuda {

// out [num_dst, dim] from x [num_src, dim]; an index out of range fails a device assert. `Real` is
// float or double.
template <class Real>
void aggregate(Launch launch, const int32_t* indptr, const int32_t* indices, const Real* x,
               int64_t num_edges, int64_t num_src, int64_t num_dst, int64_t dim, Aggregate mode,
               Real* out);

// Backward goes over the transposed block, made by a stable sort of the edges by source: each
// source's terms are added in the order of destinations, those of a source of more than
// kLongRow edges in parts that depend on their number alone, so that sums do not depend on the
// schedule.
constexpr int64_t kLongRow = 128;

struct TransposeScratch {
  int32_t* sources;    // [num_edges], sorted
  int32_t* rows;       // [num_edges], destination of each edge
  int32_t* sorted;     // [num_edges], destinations by source
  int32_t* offsets;    // [num_src + 1]
  int32_t* long_rows;  // [num_edges / kLongRow + 1], the number of them first
  void* weights;       // Real [num_dst]
  void* cub;
  size_t cub_bytes;  // aggregate_backward_scratch_bytes
};

size_t aggregate_backward_scratch_bytes(Launch launch, int64_t num_edges, int64_t num_src);

template <class Real>
void aggregate_backward(Launch launch, const int32_t* indptr, const int32_t* indices,
                        const Real* grad, int64_t num_edges, int64_t num_src, int64_t num_dst,
                        int64_t dim, Aggregate mode, TransposeScratch scratch, Real* out);

}  // namespace gnnbench::cuda
