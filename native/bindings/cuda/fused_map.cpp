#include <tuple>

#include "bindings/cuda/fused_batch.h"

namespace gnnbench::cuda {
namespace {

std::vector<Tensor> fused_map_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                   std::vector<int64_t> fanouts, std::string pick,
                                   std::vector<Tensor> tables, std::vector<int64_t> walk,
                                   std::string frontier, int64_t key, int64_t batch,
                                   bool with_positions, std::vector<int64_t> capacity) {
  FusedRequest request("fused_map", indptr, indices, seeds, fanouts, pick, tables, walk, frontier,
                       with_positions, capacity);
  request.key = static_cast<uint64_t>(key);
  request.batch = check_u32(batch, "batch", int64_t{1} << 32);
  return fused_sample(request);
}

std::vector<Tensor> fused_map_padded_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                          std::vector<int64_t> fanouts, std::string pick,
                                          std::vector<Tensor> tables, std::vector<int64_t> walk,
                                          std::string frontier, Tensor place, bool with_positions,
                                          std::vector<int64_t> capacity) {
  FusedRequest request("fused_map_padded", indptr, indices, seeds, fanouts, pick, tables, walk,
                       frontier, with_positions, capacity);
  check_layout(place, "place", 1);
  check_dtype(place, "place", ScalarType::Long);
  check_cuda({{seeds, "seeds"}, {place, "place"}});
  if (place.numel() != 3) fail("place must hold key, batch and seeds, it has ", place.numel());
  if (capacity.empty()) fail("capacity must hold two numbers a hop, it is empty");
  request.place = data<const int64_t>(place);
  return fused_sample_padded(request);
}

template <class Id>
std::tuple<Tensor, Tensor> rename(const Tensor& dst, const Tensor& neighbors) {
  const OnDevice on(dst, "fused_id_map");
  const IdMapItems<Id> items{data<const Id>(dst), dst.numel(), data<const Id>(neighbors),
                             neighbors.numel()};
  if (items.size() > kFusedMaxSlots / 4) fail(items.size(), " ids do not fit one map");
  const int64_t slots = fused_slots(items.size());
  const int64_t bytes = (fused_table_bytes<Id>(slots) + 15) / 16 * 16;
  Scratch scratch;
  const size_t control = scratch.add<char>(sizeof(FusedControl) + sizeof(FusedState));
  const size_t table = scratch.add<char>(bytes);
  scratch.allocate(on);
  Tensor nodes = on.empty({items.size()}, kIdType<Id>);
  Tensor local = on.empty({items.num_neighbors}, ScalarType::Int);
  Mailbox& box = Mailbox::of_thread();
  fused_id_map(on.launch(), items, FusedTable{scratch.at<void>(table), slots, nullptr},
               scratch.at<FusedControl>(control),
               FusedClear{scratch.at<char>(control), static_cast<int64_t>(table - control),
                          scratch.at<char>(table), bytes},
               data<Id>(nodes), data<int32_t>(local), box.open(on.launch(), 3));
  const int64_t* sizes = box.wait(on.launch());
  if (sizes[2] & (kFusedBadSeed | kFusedBadIndices)) fail("dst or neighbors holds a negative id");
  if (sizes[2] & kFusedRepeatedSeed) {
    fail("dst holds an id twice; every destination must be unique");
  }
  return {view(nodes, 0, sizes[0]), local};
}

std::tuple<Tensor, Tensor> fused_id_map_cuda(Tensor dst, Tensor neighbors) {
  check_layout(dst, "dst", 1);
  check_ids(dst, "dst");
  check_layout(neighbors, "neighbors", 1);
  check_dtype(neighbors, "neighbors", dst.scalar_type());
  check_cuda({{dst, "dst"}, {neighbors, "neighbors"}});
  return dst.scalar_type() == ScalarType::Int ? rename<int32_t>(dst, neighbors)
                                              : rename<int64_t>(dst, neighbors);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("fused_map", TORCH_BOX(&fused_map_cuda));
  m.impl("fused_map_padded", TORCH_BOX(&fused_map_padded_cuda));
  m.impl("fused_id_map", TORCH_BOX(&fused_id_map_cuda));
}

}  // namespace gnnbench::cuda
