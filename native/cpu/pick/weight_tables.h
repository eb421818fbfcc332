// Integer tables of the weighted picks (WeightTables of pick.h), built once per graph.
//
// Within a row a weight becomes a multiple of 2^-31 of the row's largest weight, at least one:
//   q[i] = 0 where w[i] = 0, else max(1, round(w[i] / largest * 2^31)), ties to even
// All further steps are exact. Rows are independent, so tables do not depend on the number of
// threads.
#pragma once

#include <cstdint>

namespace gnnbench {

// Returns the position of the first weight that is NaN, infinite or negative, or -1.
template <class Real>
int64_t first_bad_weight(const Real* weights, int64_t num_edges);

// Returns the first node whose offsets decrease or leave [0, num_edges], or -1.
int64_t first_bad_row(const int64_t* indptr, int64_t num_nodes, int64_t num_edges);

// q [num_edges].
template <class Real>
void quantize_weights(const int64_t* indptr, int64_t num_nodes, const Real* weights, uint32_t* q);

// prefix [num_edges]: inclusive sums of each row's q.
void prefix_table(const int64_t* indptr, int64_t num_nodes, const uint32_t* q, int64_t* prefix);

// Builds the alias table of each row (Walker 1977, Vose 1991) by one sweep over the light entries
// (weight below the row's mean) and one over the heavy ones, both in stored order
// (Huebschle-Schneider & Sanders, "Parallel Weighted Random Sampling", ESA 2019). The alias of an
// entry that fills its bucket is itself. Rows without weight: threshold 0, alias kNoWeight.
void alias_table(const int64_t* indptr, int64_t num_nodes, const uint32_t* q, uint32_t* threshold,
                 uint32_t* alias);

}  // namespace gnnbench
