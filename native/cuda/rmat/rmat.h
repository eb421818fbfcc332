// Launcher of the R-MAT generator on the GPU: the edges of gnnbench/rmat.h, bitwise equal to those
// of the CPU. Pointers are to device memory.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/rmat.h"

namespace gnnbench::cuda {

// keys[i] = name of edge i's target << scale | name of its source. names: int64 [nodes], a
// permutation of the nodes. *fault becomes 1 if one of them is not a node, else 0.
void rmat_keys(Launch launch, rmat::Law law, int64_t num_edges, const int64_t* names,
               uint64_t* keys, int32_t* fault);

}  // namespace gnnbench::cuda
