// The launchers of native/cuda/id_map under a name that Python can call.
#include "cuda/id_map/id_map.h"

#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

// nodes and local: as many as items. Returns the number of nodes, or minus the faults.
template <class Id>
static int64_t run(const void* dst, int64_t num_dst, const void* neighbors, int64_t num_neighbors,
                   int probes, void* nodes, int32_t* local) {
  const IdMapItems<Id> items{static_cast<const Id*>(dst), num_dst,
                             static_cast<const Id*>(neighbors), num_neighbors};
  const int64_t n = items.size(), capacity = id_map_capacity(n);
  std::vector<Id> keys(capacity);
  std::vector<int32_t> values(capacity), ranks(n + 2);
  std::vector<uint32_t> slot_of(n);
  const IdMapScratch<Id> scratch{keys.data(), values.data(), probes ? nullptr : slot_of.data(),
                                 ranks.data(), capacity};
  const Launch launch{nullptr, "test"};
  id_map_insert(launch, items, scratch, nullptr);
  int32_t sum = 0;
  for (int64_t i = 0; i <= n; ++i) {
    const int32_t flag = ranks[i];
    ranks[i] = sum;
    sum += flag;
  }
  if (ranks[n + 1] != 0) return -ranks[n + 1];
  id_map_finish(launch, items, scratch, static_cast<Id*>(nodes), local);
  return sum;
}

extern "C" int64_t id_map(int wide, const void* dst, int64_t num_dst, const void* neighbors,
                          int64_t num_neighbors, int probes, void* nodes, int32_t* local) {
  return (wide ? run<int64_t> : run<int32_t>)(dst, num_dst, neighbors, num_neighbors, probes, nodes,
                                              local);
}
