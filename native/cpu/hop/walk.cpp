#include "cpu/hop/walk.h"

#include <algorithm>

#include "cpu/common/fault_box.h"
#include "cpu/common/parallel.h"
#include "cpu/pick/row_draws.h"

namespace gnnbench {

template <class Id>
FaultAt walk_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                 const Row* rows, const int64_t* starts, Id* ids, uint32_t* visits,
                 int32_t* out_indptr) {
  const Walk& walk = draws.spec.walk;
  FaultBox box;
  out_indptr[0] = 0;
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    Id tally_ids[kMaxVisits];
    uint32_t tally_visits[kMaxVisits];
    int64_t padded = starts[chunk];
    const auto needed = [&](int64_t i) -> int64_t {
      return rows[i].count == 0 ? 0 : pick_draws(draws.spec, rows[i].degree, draws.fanout);
    };
    const auto take = [&](int64_t i, auto draw) {
      uint32_t kept =
          pick_random_walk(csc, dst[i], walk, draws.fanout, draw, tally_ids, tally_visits);
      if (kept == kBadWalk || kept == kBadWalkRow) {
        box.report(kept == kBadWalk ? Fault::kBadNeighbor : Fault::kBadRow);
        kept = 0;
      }
      std::copy_n(tally_ids, kept, ids + padded);
      std::copy_n(tally_visits, kept, visits + padded);
      padded += rows[i].count;
      out_indptr[i + 1] = static_cast<int32_t>(kept);
    };
    std::fill(out_indptr + begin + 1, out_indptr + end + 1, 0);  // for rows without draws
    for_row_draws(draws, dst, begin, end, needed, take, [](int64_t, int64_t) {});
  });
  for (int64_t i = 0; i < n; ++i) out_indptr[i + 1] += out_indptr[i];
  return box.get();
}

template <class Id>
void compact_walks(int64_t n, const Row* rows, const int64_t* starts, const Id* ids,
                   const uint32_t* visits, const int32_t* out_indptr, Id* neighbors,
                   float* weights) {
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t padded = starts[chunk];
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t from = padded, to = out_indptr[i]; to < out_indptr[i + 1]; ++from, ++to) {
        neighbors[to] = ids[from];
        weights[to] = static_cast<float>(visits[from]);
      }
      padded += rows[i].count;
    }
  });
}

#define GNNBENCH_WALK_HOP(Id)                                                                  \
  template FaultAt walk_hop(const Csc<Id>&, const Id*, int64_t, const HopDraws&, const Row*,   \
                            const int64_t*, Id*, uint32_t*, int32_t*);                         \
  template void compact_walks(int64_t, const Row*, const int64_t*, const Id*, const uint32_t*, \
                              const int32_t*, Id*, float*)

GNNBENCH_WALK_HOP(int32_t);
GNNBENCH_WALK_HOP(int64_t);

}  // namespace gnnbench
