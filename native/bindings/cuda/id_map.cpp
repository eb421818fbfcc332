#include <tuple>

#include "bindings/cuda/notification.h"
#include "bindings/cuda/stages.h"
#include "bindings/fault.h"
#include "cuda/common/scan.h"

namespace gnnbench::cuda {

template <class Id>
Renamed rename_ids(const OnDevice& on, IdMapItems<Id> items, const char* dst_name,
                   const HopEdges* hop, int64_t num_nodes, bool probes) {
  const Launch& launch = on.launch();
  const int64_t n = items.size();
  if (n > kIdMapMaxItems) fail(n, " ids in one hop do not fit int32 local ids");
  const int64_t capacity = id_map_capacity(n);
  const size_t scan_bytes = scan_scratch_bytes<int32_t>(launch, n + 1);

  Scratch memory;
  const size_t keys = memory.add<Id>(capacity);
  const size_t values = memory.add<int32_t>(capacity);
  const size_t slot_of = memory.add<uint32_t>(probes ? 0 : n);
  const size_t ranks = memory.add<int32_t>(n + 2);
  const size_t scan = memory.add<char>(static_cast<int64_t>(scan_bytes));
  memory.allocate(on);
  const IdMapScratch<Id> scratch{memory.at<Id>(keys), memory.at<int32_t>(values),
                                 probes ? nullptr : memory.at<uint32_t>(slot_of),
                                 memory.at<int32_t>(ranks), capacity};

  id_map_insert(launch, items, scratch, hop == nullptr ? nullptr : hop->faults);
  exclusive_scan(launch, memory.at<char>(scan), scan_bytes, scratch.ranks, n + 1);

  // Host synchronisation, one per map: the number of nodes determines the size of src_nodes.
  const int64_t* const numbers = read_numbers(on, {scratch.ranks + n, 2});
  const int64_t num_src = numbers[0];
  throw_on_fault(static_cast<Fault>(numbers[1]), num_nodes, dst_name);

  Renamed out{on.empty({num_src}, kIdType<Id>), on.empty({items.num_neighbors}, ScalarType::Int)};
  id_map_finish(launch, items, scratch, data<Id>(out.src_nodes), data<int32_t>(out.local));
  return out;
}

template Renamed rename_ids<int32_t>(const OnDevice&, IdMapItems<int32_t>, const char*,
                                     const HopEdges*, int64_t, bool);
template Renamed rename_ids<int64_t>(const OnDevice&, IdMapItems<int64_t>, const char*,
                                     const HopEdges*, int64_t, bool);

namespace {

template <class Id>
std::tuple<Tensor, Tensor> run(const Tensor& dst, const Tensor& neighbors, bool probes) {
  const OnDevice on(dst, "id_map");
  Renamed r = rename_ids(on,
                         IdMapItems<Id>{data<const Id>(dst), dst.numel(), data<const Id>(neighbors),
                                        neighbors.numel()},
                         "dst", nullptr, 0, probes);
  return {r.src_nodes, r.local};
}

std::tuple<Tensor, Tensor> id_map_cuda(Tensor dst, Tensor neighbors, std::string id_map) {
  const bool probes = id_map_from_name(id_map) == IdMap::kThreePassProbing;
  if (id_map == "fused") fail("id_map 'fused' is the operator fused_id_map");
  check_layout(dst, "dst", 1);
  check_ids(dst, "dst");
  check_layout(neighbors, "neighbors", 1);
  check_dtype(neighbors, "neighbors", dst.scalar_type());
  check_cuda({{dst, "dst"}, {neighbors, "neighbors"}});
  return dst.scalar_type() == ScalarType::Int ? run<int32_t>(dst, neighbors, probes)
                                              : run<int64_t>(dst, neighbors, probes);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("id_map", TORCH_BOX(&id_map_cuda)); }

}  // namespace gnnbench::cuda
