// FastGL's Memory-Aware aggregation (section 4.2 and Fig. 7), as published.
#pragma once

#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// A block has X `targets` (rows) and Y `dims` of them, with one thread each; the paper uses X = 8,
// Y = 32. Partial sums [X, Y] and the weights of the targets' edges are in shared memory. A thread
// reads its column of a source's row from global memory, the weight and its partial sum from shared
// memory, and writes the sum back. The backward is the same over the transpose.
//
// It is slower than tuned.h because it saves traffic that does not occur. Compilers keep a partial
// sum of a single thread in a register, and a weight shared by all columns comes from L1. The
// paper's baseline moves both through global memory at every edge. The sum is bound by reading the
// sources' rows. This kernel reads them with 4 bytes per thread, one edge at a time: a warp waits
// for one line of 128 bytes, while tuned.h has eight reads of 512 bytes in flight. Each edge also
// costs an additional load and store of shared memory. Each slice of 32 columns reads indptr,
// indices and weights again.
// weights again.
//
// The paper keeps all weights of a target in shared memory. Here it holds `tile` of them at a time,
// so that rows can have any length.
template <class T>
void memory_aware(Launch launch, const RowSums<T>& sums, int targets, int dims);

// Bytes of shared memory per block.
int64_t memory_aware_shared_bytes(int64_t real_bytes, int64_t heads, int64_t dim, int targets,
                                  int dims);

}  // namespace gnnbench::cuda
