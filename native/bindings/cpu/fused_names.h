// Fused-Map's relabelling of one hop, separate from sampling, as in FastGL's paper (section 4.3).
#pragma once

#include "bindings/cpu/fused_hops.h"
#include "cpu/fused_map/fused_map.h"

namespace gnnbench {

// Returns `dst` (unique; verified with `check`), then the other neighbours, in a nondeterministic
// order if there are several threads.
template <class Id>
Renamed fused_names(const Csc<Id>& csc, const Id* dst, int64_t num_dst, bool check,
                    const Id* neighbors, int64_t num_neighbors, int64_t number) {
  const int64_t unknown = std::max<int64_t>(csc.num_nodes - num_dst, 0);
  const int64_t workers =
      std::clamp<int64_t>(num_chunks(num_neighbors, kFusedEdges), 1, num_threads());
  const int64_t blocks = claim_blocks(std::min(num_neighbors, workers * unknown), workers);
  if (num_dst + blocks * kClaimBlock >= INT32_MAX) fail_hop_edges(number, num_neighbors);
  const int64_t slots = fused_map_slots(num_dst + std::min(num_neighbors, unknown));
  const Scratch<uint8_t> memory(slots * kFusedMapSlotBytes<Id>);
  const FusedMap<Id> map = new_fused_map(memory.ptr, slots, dst, check ? 0 : num_dst);
  if (check) throw_on_fault(fused_seeds(map, dst, num_dst), csc.num_nodes);

  ClaimPool<Id> pool(blocks);
  Tensor local = empty_cpu(num_neighbors, ScalarType::Int);
  FusedHop<Id> hop{};
  hop.csc = csc;
  hop.walked = neighbors;
  hop.edges = num_neighbors;
  hop.known = num_dst;
  hop.workers = workers;
  hop.claims = &pool.claims;
  hop.indices = data<int32_t>(local);
  if (num_neighbors > 0) throw_on_fault(fused_sample(map, hop), csc.num_nodes);

  FusedNext<Id> next{};
  next.last = true;  // the next hop has another map
  next.total = pool.claims.close_up(num_dst);
  next.known = dst;
  Tensor src_nodes = empty_cpu(next.total, kIdType<Id>);
  next.nodes = data<Id>(src_nodes);
  throw_on_fault(fused_settle(map, hop, next), csc.num_nodes);
  return {src_nodes, local};
}

}  // namespace gnnbench
