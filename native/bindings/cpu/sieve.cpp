#include "cpu/sieve/sieve.h"

#include <tuple>

#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

void check(const Tensor& t, const char* name, ScalarType type) {
  check_layout(t, name, 1);
  check_dtype(t, name, type);
  check_cpu(t, name);
}

std::tuple<Tensor, Tensor> sieve_insert_cpu(Tensor nodes, Tensor newer, Tensor visited,
                                            Tensor state, Tensor ids) {
  check(nodes, "nodes", ScalarType::Long);
  check(newer, "newer", ScalarType::Int);
  check(visited, "visited", ScalarType::Byte);
  check(state, "state", ScalarType::Long);
  check(ids, "ids", ScalarType::Long);
  const int64_t capacity = nodes.numel(), n = ids.numel();
  if (newer.numel() != capacity || visited.numel() != capacity) {
    fail("nodes, newer and visited must have one entry per slot");
  }
  if (capacity > INT32_MAX) fail("a queue has 2^31 - 1 slots at most, it has ", capacity);
  if (state.numel() != 5) fail("state must have 5 entries, it has ", state.numel());
  const std::pair<const Tensor&, const char*> all[] = {
      {nodes, "nodes"}, {newer, "newer"}, {visited, "visited"}, {state, "state"}, {ids, "ids"}};
  for (size_t a = 0; a < std::size(all); ++a) {
    for (size_t b = a + 1; b < std::size(all); ++b) {
      check_apart(all[a].first, all[a].second, all[b].first, all[b].second);
    }
  }
  auto* now = reinterpret_cast<SieveState*>(data<int64_t>(state));
  const auto is_slot = [&](int64_t s) { return s >= kNone && s < capacity; };
  if (now->filled < 0 || now->filled > capacity || !is_slot(now->oldest) || !is_slot(now->newest) ||
      !is_slot(now->hand) || !is_slot(now->behind)) {
    fail("state is not valid for a queue of ", capacity, " slots");
  }
  const SieveQueue queue{data<int64_t>(nodes), data<int32_t>(newer), data<uint8_t>(visited), now,
                         capacity};
  Tensor slots = empty_cpu(n, ScalarType::Int), evicted = empty_cpu(n, ScalarType::Long);
  const int64_t gone =
      sieve_insert(queue, data<int64_t>(ids), n, data<int32_t>(slots), data<int64_t>(evicted));
  if (gone == kNone) fail("newer does not link a queue of ", capacity, " slots");
  return {slots, prefix(evicted, gone)};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("sieve_insert", TORCH_BOX(&sieve_insert_cpu));
}

}  // namespace gnnbench
