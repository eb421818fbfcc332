// FastGL's Fused-Map: fused sampling with a hash table per batch.
#include "cpu/fused_map/fused_map.h"

#include "bindings/cpu/fused_hops.h"

namespace gnnbench {
namespace {

// The table grows with the maximum number of nodes that the next hop can add. Its entries are
// copied.
template <class Id>
class FusedMaps {
 public:
  const FusedMap<Id>& map() const { return map_; }

  void reserve(int64_t keys, const Id* nodes, int64_t known) {
    const int64_t slots = fused_map_slots(keys);
    if (slots <= slots_) return;
    slots_ = slots;
    memory_ = Scratch<uint8_t>(slots * kFusedMapSlotBytes<Id>);
    map_ = new_fused_map(memory_.ptr, slots, nodes, known);
  }

 private:
  int64_t slots_ = 0;
  Scratch<uint8_t> memory_{0};
  FusedMap<Id> map_;
};

template <class Id>
std::vector<Tensor> run(BatchTask& task) {
  FusedMaps<Id> maps;
  return run_fused<Id>(task, maps);
}

std::vector<Tensor> fused_map_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                                  std::vector<int64_t> fanouts, std::string pick,
                                  std::vector<Tensor> tables, std::vector<int64_t> walk,
                                  std::string frontier, int64_t key, int64_t batch,
                                  bool with_positions,
                                  std::vector<int64_t> /*capacity: sizes are known here in time*/) {
  BatchTask task = batch_task(indptr, indices, seeds, fanouts, pick, tables, walk, frontier, key,
                              batch, with_positions);
  return with_team(task, [&] {
    return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task) : run<int64_t>(task);
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("fused_map", TORCH_BOX(&fused_map_cpu)); }

}  // namespace gnnbench
