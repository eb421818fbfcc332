#include "cpu/fastsample/fastsample.h"

#include "cpu/common/multiversion.h"
#include "cpu/fastsample/engine.h"

namespace gnnbench {
namespace {

GNNBENCH_CLONES bool any_from(int32_t limit, const int32_t* values, int64_t n) {
  int32_t found = 0;
  for (int64_t i = 0; i < n; ++i) found |= values[i] >= limit ? -1 : 0;
  return found != 0;
}

}  // namespace

void settle_ids(const int32_t* bases, int64_t known, int64_t dense, int32_t* indices, int64_t n) {
  constexpr int64_t kPiece = 256;  // most pieces have none
  const int32_t from = static_cast<int32_t>(known), limit = static_cast<int32_t>(known + dense);
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = std::min(n, begin + kPiece);
    if (!any_from(limit, indices + begin, end - begin)) continue;
    for (int64_t e = begin; e < end; ++e) {
      const int32_t place = indices[e] - from;
      if (place >= dense) indices[e] = bases[place / kClaimBlock] + place % kClaimBlock;
    }
  }
}

template FaultAt fused_rows_of(const Csc<int32_t>&, const HopDraws&, const int32_t*, int64_t, Row*,
                               int64_t*);
template FaultAt fused_rows_of(const Csc<int64_t>&, const HopDraws&, const int64_t*, int64_t, Row*,
                               int64_t*);
template Fault fused_seeds(const DenseMap<int32_t>&, const int32_t*, int64_t);
template Fault fused_seeds(const DenseMap<int64_t>&, const int64_t*, int64_t);
template FaultAt fused_sample(const DenseMap<int32_t>&, const FusedHop<int32_t>&);
template FaultAt fused_sample(const DenseMap<int64_t>&, const FusedHop<int64_t>&);
template FaultAt fused_settle(const DenseMap<int32_t>&, const FusedHop<int32_t>&,
                              const FusedNext<int32_t>&);
template FaultAt fused_settle(const DenseMap<int64_t>&, const FusedHop<int64_t>&,
                              const FusedNext<int64_t>&);

}  // namespace gnnbench
