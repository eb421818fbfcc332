// Conversion of a block's edges from COO to CSC, as DGL's: the edges of each destination are
// counted, offsets are their sums, and every edge is moved to its place (FastSample, section 3.2).
// The edges of a destination keep their order for any number of workers.
#pragma once

#include <cstdint>

namespace gnnbench {

struct CooEdges {
  const int32_t* targets;    // [n] local ids of the destinations
  const int32_t* sources;    // [n] local ids of the sources
  const int64_t* positions;  // [n], or null
  int64_t n;
};

int64_t coo_workers(int64_t edges);

// Writes indptr [rows + 1], indices [n] and positions [n] or null. counts [coo_workers(n) * rows]
// is scratch.
void coo_to_csc(const CooEdges& coo, int64_t rows, int32_t* counts, int32_t* indptr,
                int32_t* indices, int64_t* positions);

}  // namespace gnnbench
