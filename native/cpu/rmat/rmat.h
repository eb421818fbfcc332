// R-MAT graphs on the CPU.
#pragma once

#include <cstdint>

#include "gnnbench/rmat.h"

namespace gnnbench::rmat {

// Writes indptr [nodes + 1] and indices [num_edges], rows ascending, with parallel edges. names:
// int64 [nodes], a permutation of the nodes. keys and other: [num_edges] each, scratch. Returns
// false where a name is not a node; the outputs are then undefined.
bool graph(const Law& law, int64_t num_edges, const int64_t* names, uint64_t* keys, uint64_t* other,
           int64_t* indptr, int32_t* indices);

}  // namespace gnnbench::rmat
