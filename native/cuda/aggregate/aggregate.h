// The simple aggregation over a block: a group of lanes per row, four loads in flight, no exchange
// between lanes. tuned.h is the fast version.
#pragma once

#include "cuda/aggregate/sum_of.h"
#include "cuda/common/launch.h"
#include "gnnbench/aggregate.h"

namespace gnnbench::cuda {

// out [num_dst, dim] from x [num_src, dim]. weights [num_edges]; null means 1. An index out of
// range fails a device assert. `T` is float, double, __half or __nv_bfloat16.
template <class T>
void aggregate(Launch launch, const int32_t* indptr, const int32_t* indices, const T* x,
               const Sum<T>* weights, int64_t num_edges, int64_t num_src, int64_t num_dst,
               int64_t dim, Aggregate mode, T* out);

}  // namespace gnnbench::cuda
