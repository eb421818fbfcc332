#include <atomic>
#include <tuple>

#include "bindings/cpu/hop.h"

namespace gnnbench {
namespace {

// Returns the largest id plus 1, or 0 without ids. Fails on a negative id.
template <class Id>
uint64_t bound_of(const Id* ids, int64_t n, const char* name) {
  std::atomic<uint64_t> bound{0};
  std::atomic<bool> negative{false};
  parallel_chunks(n, kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    Id low = 0, high = 0;
    for (int64_t i = begin; i < end; ++i) {
      low = std::min(low, ids[i]);
      high = std::max(high, ids[i]);
    }
    if (low < 0) negative.store(true);
    const uint64_t above = static_cast<uint64_t>(high) + 1;
    uint64_t seen = bound.load();
    while (above > seen && !bound.compare_exchange_weak(seen, above)) {
    }
  });
  if (negative.load()) fail(name, " holds a negative id");
  return bound.load();
}

template <class Id>
std::tuple<Tensor, Tensor> run(const Tensor& dst, const Tensor& neighbors, bool probes) {
  const Id *d = data<const Id>(dst), *e = data<const Id>(neighbors);
  const uint64_t bound =
      std::max(bound_of(d, dst.numel(), "dst"), bound_of(e, neighbors.numel(), "neighbors"));
  const Renamed r = probes ? rename_ids_probing(d, dst.numel(), e, neighbors.numel(), "dst")
                           : rename_ids(d, dst.numel(), e, neighbors.numel(), bound, "dst");
  return {r.src_nodes, r.local};
}

std::tuple<Tensor, Tensor> id_map_cpu(Tensor dst, Tensor neighbors, std::string id_map) {
  const IdMap map = id_map_from_name(id_map);
  if (map == IdMap::kFused) fail("id_map 'fused' is the operator fused_id_map");
  check_layout(dst, "dst", 1);
  check_ids(dst, "dst");
  check_layout(neighbors, "neighbors", 1);
  check_dtype(neighbors, "neighbors", dst.scalar_type());
  check_cpu(dst, "dst");
  check_cpu(neighbors, "neighbors");
  const bool probes = map == IdMap::kThreePassProbing;
  return dst.scalar_type() == ScalarType::Int ? run<int32_t>(dst, neighbors, probes)
                                              : run<int64_t>(dst, neighbors, probes);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("id_map", TORCH_BOX(&id_map_cpu)); }

}  // namespace gnnbench
