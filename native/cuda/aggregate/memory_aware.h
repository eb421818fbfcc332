// FastGL's Memory-Aware aggregation (section 4.2 and Fig. 7), as published.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// A block has X `targets` (rows) and Y `dims` of them, a thread each; the paper takes X = 8, Y
// = 32. Partial sums [X, Y] and the weights of the targets' edges lie in shared memory; a thread
// reads its column of a source's row from global memory, the weight and its partial sum from shared
// memory, and writes the sum back there. The backward is the same over the transpose.
//
// Why it is slower than tuned.h: what it saves was never spent. A partial sum that a thread owns
// alone is kept in a register by any compiler, and a weight that all columns share comes from L1:
// the paper's comparison has both travel to global memory at every edge. What bounds the sum are
// the sources' rows, which it reads like anyone else, but 4 bytes a thread, one edge at a time, so
// that a warp waits for one line of 128 bytes where tuned.h waits for eight of 512; and each edge
// costs a load and a store of shared memory more. Cutting rows to 32 columns reads indptr, indices
// and weights anew for each cut.
//
// The paper has room for all weights of a target; here `tile` of them lie there at a time, so that
// no row is too long.
template <class T>
void memory_aware(Launch launch, const RowSums<T>& sums, int targets, int dims);

// Bytes of shared memory that a block takes.
int64_t memory_aware_shared_bytes(int64_t real_bytes, int64_t heads, int64_t dim, int targets,
                                  int dims);

}  // namespace gnnbench::cuda
