// Edges in COO to CSR: counts and ranks of edges within their rows, then, over scanned counts,
// their places. DGL's blocks stay in COO until a layer needs them otherwise.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// rows int32 [n]; counts int32, one per row, initially zero; ranks int32 [n], any order in a row.
void coo_count(Launch launch, const int32_t* rows, int64_t n, int32_t* counts, int32_t* ranks);

// Edges with local ids of both ends, and their positions or null.
struct CooEdges {
  const int32_t* rows;
  const int32_t* ranks;
  const int32_t* cols;
  const int64_t* positions;
  int64_t n;
};

// indptr: the scanned counts. indices int32 [n] and positions int64 [n], or null, are outputs.
void coo_place(Launch launch, const CooEdges& edges, const int32_t* indptr, int32_t* indices,
               int64_t* positions);

}  // namespace gnnbench::cuda
