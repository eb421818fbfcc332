#include "cpu/fused_map/fused_map.h"

#include "cpu/fastsample/engine.h"

namespace gnnbench {

template <class Id>
FusedMap<Id> new_fused_map(void* memory, int64_t slots, const Id* nodes, int64_t known) {
  constexpr int64_t kClearChunk = 1 << 16;
  parallel_chunks(
      slots * kFusedMapSlotBytes<Id>, kClearChunk, [&](int64_t, int64_t begin, int64_t end) {
        std::memset(static_cast<char*>(memory) + begin, 0xFF, static_cast<size_t>(end - begin));
      });
  const FusedMap<Id> map(memory, slots);
  parallel_chunks(known, kFusedTask, [&](int64_t, int64_t begin, int64_t end) {
    Id fresh;
    int32_t id;
    for (int64_t i = begin; i < end; ++i) {
      map.prefetch(nodes[std::min(i + kFusedAhead, end - 1)]);
      map.template claim<true>(nodes + i, 1, static_cast<int32_t>(i), &fresh, &id);
    }
  });
  return map;
}

template FusedMap<int32_t> new_fused_map(void*, int64_t, const int32_t*, int64_t);
template FusedMap<int64_t> new_fused_map(void*, int64_t, const int64_t*, int64_t);
template Fault fused_seeds(const FusedMap<int32_t>&, const int32_t*, int64_t);
template Fault fused_seeds(const FusedMap<int64_t>&, const int64_t*, int64_t);
template FaultAt fused_sample(const FusedMap<int32_t>&, const FusedHop<int32_t>&);
template FaultAt fused_sample(const FusedMap<int64_t>&, const FusedHop<int64_t>&);
template FaultAt fused_settle(const FusedMap<int32_t>&, const FusedHop<int32_t>&,
                              const FusedNext<int32_t>&);
template FaultAt fused_settle(const FusedMap<int64_t>&, const FusedHop<int64_t>&,
                              const FusedNext<int64_t>&);

}  // namespace gnnbench
