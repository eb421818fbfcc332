#include <algorithm>
#include <vector>

#include "bindings/cuda/fused_batch.h"
#include "bindings/cuda/notification.h"
#include "bindings/fault.h"
#include "cuda/common/copies.h"
#include "gnnbench/fused_entry.h"

namespace gnnbench::cuda {
namespace {

constexpr size_t kMaxNamedHops = 1024;

std::vector<Tensor> fused_map_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                   std::vector<int64_t> fanouts, std::string pick,
                                   std::vector<Tensor> tables, std::vector<int64_t> walk,
                                   std::string frontier, int64_t key, int64_t batch,
                                   bool with_positions, std::vector<int64_t> capacity) {
  FusedRequest request("fused_map", indptr, indices, seeds, fanouts, pick, tables, walk, frontier,
                       with_positions, capacity);
  request.key = static_cast<uint64_t>(key);
  request.batch = check_u32(batch, "batch", int64_t{1} << 32);
  check_seed_count(request.work.seeds, request.work.num_nodes);
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

// Sizes go to pinned host memory; see fused_sample_async.
std::vector<Tensor> fused_map_asked_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                         std::vector<int64_t> fanouts, std::string pick,
                                         std::vector<Tensor> tables, std::vector<int64_t> walk,
                                         std::string frontier, int64_t key, int64_t batch,
                                         bool with_positions, Tensor sizes, Tensor state,
                                         int64_t version, std::vector<int64_t> capacity) {
  FusedRequest request("fused_map_asked", indptr, indices, seeds, fanouts, pick, tables, walk,
                       frontier, with_positions, capacity);
  request.key = static_cast<uint64_t>(key);
  request.batch = check_u32(batch, "batch", int64_t{1} << 32);
  if (capacity.empty()) fail("capacity must hold two numbers a hop, it is empty");
  check_layout(sizes, "sizes", 1);
  check_dtype(sizes, "sizes", ScalarType::Long);
  if (sizes.numel() != static_cast<int64_t>(2 * fanouts.size() + 1)) {
    fail("sizes must hold two numbers a hop and the faults, it has ", sizes.numel());
  }
  check_layout(state, "state", 1);
  check_dtype(state, "state", ScalarType::Byte);
  check_cuda({{seeds, "seeds"}, {state, "state"}});
  if (version < 1 || version > int64_t{kLastFusedVersion}) {
    fail("version must be between 1 and ", kLastFusedVersion, ", it is ", version);
  }
  auto* numbers = const_cast<int64_t*>(request.on.pointer<int64_t>(sizes, "sizes"));
  return fused_sample_async(request, numbers, state, static_cast<uint32_t>(version));
}

}  // namespace

template <class Id>
FusedNamed fused_names(const OnDevice& on, const Tensor& dst, const std::vector<Tensor>& neighbors,
                       int64_t max_nodes, const char* dst_name, const HopEdges* drawn,
                       int64_t num_nodes) {
  const int64_t hops = static_cast<int64_t>(neighbors.size());
  const int64_t slots = fused_slots(max_nodes);
  const int64_t bytes = (fused_table_bytes<Id>(slots) + 15) / 16 * 16;
  Scratch scratch;
  const size_t control =
      scratch.add<char>(sizeof(FusedControl) + static_cast<size_t>(hops) * sizeof(FusedState));
  const size_t table = scratch.add<char>(bytes);
  const size_t nodes_at = scratch.add<Id>(max_nodes);
  scratch.allocate(on);
  Id* const nodes = scratch.at<Id>(nodes_at);
  FusedNamed out{Tensor{}, {}, false};
  std::vector<FusedNames<Id>> names;
  for (const Tensor& t : neighbors) {
    out.local.push_back(on.empty({t.numel()}, ScalarType::Int));
    names.push_back({data<const Id>(t), data<int32_t>(out.local.back()), t.numel()});
  }
  NotificationBuffer& box = NotificationBuffer::of(on);
  fused_id_map(on.launch(), Vertices{dst.data_ptr(), sizeof(Id) == 8}, dst.numel(), names.data(),
               static_cast<uint32_t>(hops), FusedTable{scratch.at<void>(table), slots, nullptr, 0},
               scratch.at<FusedControl>(control),
               FusedClear{scratch.at<char>(control), static_cast<int64_t>(table - control),
                          scratch.at<char>(table), bytes},
               nodes, max_nodes, drawn == nullptr ? nullptr : drawn->faults,
               box.open(on.launch(), 2 * hops + 1));
  const int64_t* sizes = box.wait(on.launch());
  Fault faults = static_cast<Fault>(sizes[2 * hops]);
  if (drawn == nullptr && has(faults, Fault::kBadSeed)) {
    faults = Fault::kNegativeId;  // without a graph, ids have no upper bound
  }
  throw_on_fault(faults, num_nodes, dst_name);
  if (faults != Fault::kNone) return out;
  const int64_t found = hops > 0 ? sizes[2 * (hops - 1)] : dst.numel();
  out.src_nodes = on.empty({found}, kIdType<Id>);
  copy_all(on.launch(), {{nodes, out.src_nodes.data_ptr(), found * int64_t{sizeof(Id)}}});
  out.fits = true;
  return out;
}

template FusedNamed fused_names<int32_t>(const OnDevice&, const Tensor&, const std::vector<Tensor>&,
                                         int64_t, const char*, const HopEdges*, int64_t);
template FusedNamed fused_names<int64_t>(const OnDevice&, const Tensor&, const std::vector<Tensor>&,
                                         int64_t, const char*, const HopEdges*, int64_t);

namespace {

std::vector<Tensor> fused_id_map_cuda(Tensor dst, std::vector<Tensor> neighbors, int64_t nodes) {
  check_layout(dst, "dst", 1);
  check_ids(dst, "dst");
  check_cuda({{dst, "dst"}});
  int64_t items = dst.numel();
  for (const Tensor& t : neighbors) {
    check_layout(t, "neighbors", 1);
    check_dtype(t, "neighbors", dst.scalar_type());
    check_cuda({{dst, "dst"}, {t, "neighbors"}});
    items += t.numel();
  }
  if (neighbors.size() > kMaxNamedHops) {
    fail("neighbors must be those of at most ", kMaxNamedHops, " hops, not ", neighbors.size());
  }
  if (items > kFusedMaxSlots / 4) fail(items, " ids do not fit one map");
  if (nodes < 0) fail("nodes must be at least 0, it is ", nodes);
  const OnDevice on(dst, "fused_id_map");
  const auto go = [&](int64_t room) {
    return dst.scalar_type() == ScalarType::Int
               ? fused_names<int32_t>(on, dst, neighbors, room, "dst", nullptr, 0)
               : fused_names<int64_t>(on, dst, neighbors, room, "dst", nullptr, 0);
  };
  FusedNamed named{Tensor{}, {}, false};
  if (nodes > 0 && nodes < items) named = go(std::max(nodes, dst.numel()));
  if (!named.fits) named = go(items);
  std::vector<Tensor> out = {named.src_nodes};
  out.insert(out.end(), named.local.begin(), named.local.end());
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("fused_map", TORCH_BOX(&fused_map_cuda));
  m.impl("fused_map_padded", TORCH_BOX(&fused_map_padded_cuda));
  m.impl("fused_map_asked", TORCH_BOX(&fused_map_asked_cuda));
  m.impl("fused_id_map", TORCH_BOX(&fused_id_map_cuda));
}

}  // namespace gnnbench::cuda
