// GNNAdvisor's aggregation (Wang et al., OSDI 2021): neighbour groups and the 2D workload.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Splits rows into groups of at most `group` consecutive entries, with the groups of one row
// contiguous. Sampling-based training repeats this preprocessing for each block. offsets [num_rows
// + 1]: prefix sums of the groups per row. The last is the number of groups, for which starts
// [groups + 1] (entries) and rows [groups] need space.
size_t count_groups_scan_bytes(Launch launch, int64_t num_rows);
void count_groups(Launch launch, const int32_t* indptr, int64_t num_rows, int64_t group, void* scan,
                  size_t scan_bytes, int32_t* offsets);
void write_groups(Launch launch, const int32_t* indptr, const int32_t* offsets, int64_t num_rows,
                  int64_t group, int32_t* starts, int32_t* rows);

// out [num_rows, dim], sums of x [num_src, dim]. One warp per group: its neighbours (32 at a time)
// and partial sums are in shared memory. `dim_workers` lanes (1 to 32) process the columns, at most
// kGroupColumns at a time, and atomics add the sums to the row. The terms of a row with several
// groups are added in the order of the warps. Two such terms give the same bits in either order
// (they are added to 0), three may not.
constexpr int kGroupWarps = 4;  // per block
constexpr int kGroupColumns = 1024;
template <class Real>
void sum_groups(Launch launch, const int32_t* starts, const int32_t* rows, int64_t num_groups,
                const int32_t* indices, int64_t num_edges, const Real* x, int64_t num_src,
                int64_t dim, int64_t num_rows, int dim_workers, Real* out);

}  // namespace gnnbench::cuda
