#include "cpu/fastsample.h"

#include "cpu/fastsample_engine.h"

namespace gnnbench {

template FusedFault fused_rows_of(const Csc<int32_t>&, const HopDraws&, const int32_t*, int64_t,
                                  Row*, int64_t*);
template FusedFault fused_rows_of(const Csc<int64_t>&, const HopDraws&, const int64_t*, int64_t,
                                  Row*, int64_t*);
template FusedFault fused_seeds(const DenseMap<int32_t>&, const int32_t*, int64_t);
template FusedFault fused_seeds(const DenseMap<int64_t>&, const int64_t*, int64_t);
template FusedFault fused_sample(const DenseMap<int32_t>&, const FusedHop<int32_t>&);
template FusedFault fused_sample(const DenseMap<int64_t>&, const FusedHop<int64_t>&);
template FusedFault fused_settle(const DenseMap<int32_t>&, const FusedHop<int32_t>&,
                                 FusedNext<int32_t>&);
template FusedFault fused_settle(const DenseMap<int64_t>&, const FusedHop<int64_t>&,
                                 FusedNext<int64_t>&);

}  // namespace gnnbench
