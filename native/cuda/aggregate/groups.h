// GNNAdvisor's aggregation (Wang et al., OSDI 2021): neighbour groups and the 2D workload.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Rows are cut into groups of at most `group` consecutive entries, those of one row next to each
// other: the preprocessing, which sampling-based training needs anew for each block. offsets
// [num_rows + 1]: the groups of each row, their number last, for which there must be room when they
// are written: starts [groups + 1] (entries) and rows [groups].
size_t count_groups_scan_bytes(Launch launch, int64_t num_rows);
void count_groups(Launch launch, const int32_t* indptr, int64_t num_rows, int64_t group, void* scan,
                  size_t scan_bytes, int32_t* offsets);
void write_groups(Launch launch, const int32_t* indptr, const int32_t* offsets, int64_t num_rows,
                  int64_t group, int32_t* starts, int32_t* rows);

// out [num_rows, dim], sums of x [num_src, dim]. A warp a group: its neighbours (32 at a time) and
// partial sums lie in shared memory, `dim_workers` lanes (1 to 32) go over the columns, at most
// kGroupColumns of them at a time, and the sums are added to the row's by atomics. A row of more
// than one group is added up in the order in which warps come: two such terms give the same bits in
// either order (they are added to 0), three may not.
constexpr int kGroupWarps = 4;  // of a block
constexpr int kGroupColumns = 1024;
template <class Real>
void sum_groups(Launch launch, const int32_t* starts, const int32_t* rows, int64_t num_groups,
                const int32_t* indices, int64_t num_edges, const Real* x, int64_t num_src,
                int64_t dim, int64_t num_rows, int dim_workers, Real* out);

}  // namespace gnnbench::cuda
