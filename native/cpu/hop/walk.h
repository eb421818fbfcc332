// One hop of random walks (PinSAGE). How many neighbours a row keeps is known once its walks are
// walked: rows are first padded to the most there can be, then compacted.
#pragma once

#include "cpu/hop/hop.h"

namespace gnnbench {

// Over the rows and starts of count_hop: fills out_indptr [n + 1] and, at each row's padded place,
// ids and visits [edges of count_hop]. kBadNeighbor or kBadRow where a walk met a broken graph.
template <class Id>
FaultAt walk_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                 const Row* rows, const int64_t* starts, Id* ids, uint32_t* visits,
                 int32_t* out_indptr);

// Takes the padding out: neighbors and weights [out_indptr[n]].
template <class Id>
void compact_walks(int64_t n, const Row* rows, const int64_t* starts, const Id* ids,
                   const uint32_t* visits, const int32_t* out_indptr, Id* neighbors,
                   float* weights);

}  // namespace gnnbench
