// One hop of random walks (PinSAGE). The number of neighbours of a row is known only after its
// walks: rows are first padded to the maximum, then compacted.
#pragma once

#include "cpu/hop/hop.h"

namespace gnnbench {

// Walks from the rows and starts of count_hop. Writes out_indptr [n + 1] and, at each row's padded
// place, ids and visits [edges of count_hop]. Returns kBadNeighbor or kBadRow if a walk met an
// invalid entry or row.
template <class Id>
FaultAt walk_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                 const Row* rows, const int64_t* starts, Id* ids, uint32_t* visits,
                 int32_t* out_indptr);

// Removes the padding. Writes neighbors and weights [out_indptr[n]].
template <class Id>
void compact_walks(int64_t n, const Row* rows, const int64_t* starts, const Id* ids,
                   const uint32_t* visits, const int32_t* out_indptr, Id* neighbors,
                   float* weights);

}  // namespace gnnbench
