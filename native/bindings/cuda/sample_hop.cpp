#include <tuple>

#include "bindings/cuda/stages.h"

namespace gnnbench::cuda {

void check_hop_fault(int64_t fault, int64_t num_nodes) {
  if (fault == kHopBadIndices) {
    fail_data("indices holds an id that is not a node; the graph has the nodes 0 to ",
              num_nodes - 1);
  }
}

template <class Id>
HopEdges sample_one_hop(const OnDevice& on, const Csc<Id>& graph, Vertices dst, int64_t n,
                        const HopDraws& draws, int32_t base, bool with_positions,
                        const char* dst_name) {
  const Launch& launch = on.launch();
  if (n >= INT32_MAX) fail("a hop of ", n, " destinations does not fit int32 blocks");
  const size_t scan_bytes = scan_scratch_bytes<int64_t>(launch, n + 1);
  Scratch scratch;
  const size_t offsets_at = scratch.add<int64_t>(n + 2);
  const size_t scan_at = scratch.add<char>(static_cast<int64_t>(scan_bytes));
  scratch.allocate(on);
  int64_t* offsets = scratch.at<int64_t>(offsets_at);
  hop_degrees(launch, graph, dst, n, draws.fanout, offsets);
  exclusive_scan(launch, scratch.at<char>(scan_at), scan_bytes, offsets, n + 1);

  // Host synchronisation, one a hop: the number of edges sizes the outputs.
  int64_t count_and_fault[2];
  on.read_back(offsets + n, count_and_fault, 2);
  const auto [edges, fault] = count_and_fault;
  if (fault == kHopBadDst) {
    fail(dst_name, " holds an id outside the graph, which has the nodes 0 to ",
         graph.num_nodes - 1);
  }
  if (fault == kHopBadIndptr) {
    fail_data("indptr is broken: offsets must not decrease and must stay within indices");
  }
  if (edges > INT32_MAX) {
    fail("hop ", draws.hop, " draws ", edges,
         " edges, int32 blocks hold 2^31 - 1; take a smaller batch or fanouts");
  }

  HopEdges out{on.empty({n + 1}, ScalarType::Int), on.empty({edges}, kIdType<Id>),
               with_positions ? on.empty({edges}, ScalarType::Long) : Tensor(), scratch,
               offsets + n + 1};
  const bool wants_slots = hop_pick_needs_slots(draws.pick, draws.fanout);
  const Tensor slots = wants_slots ? on.empty({edges}, ScalarType::Int) : Tensor();
  hop_pick(launch, graph, dst, n, draws.fanout, draws.pick, draws.key, draws.hop, draws.batch,
           offsets, wants_slots ? data<uint32_t>(slots) : nullptr,
           HopOut<Id>{data<int32_t>(out.indptr), base, data<Id>(out.neighbors),
                      with_positions ? data<int64_t>(out.positions) : nullptr});
  return out;
}

template HopEdges sample_one_hop<int32_t>(const OnDevice&, const Csc<int32_t>&, Vertices, int64_t,
                                          const HopDraws&, int32_t, bool, const char*);
template HopEdges sample_one_hop<int64_t>(const OnDevice&, const Csc<int64_t>&, Vertices, int64_t,
                                          const HopDraws&, int32_t, bool, const char*);

namespace {

template <class Id>
std::tuple<Tensor, Tensor, Tensor> run(const Tensor& indptr, const Tensor& indices,
                                       const Tensor& dst, const HopDraws& draws) {
  const OnDevice on(indptr, "sample_hop");
  const Csc<Id> graph{data<const int64_t>(indptr), data<const Id>(indices), indptr.numel() - 1,
                      indices.numel()};
  HopEdges e = sample_one_hop(on, graph, Vertices{dst.data_ptr(), sizeof(Id) == 8}, dst.numel(),
                              draws, 0, true, "dst");
  // Host synchronisation: alone, the operator must tell a broken graph before it returns.
  int64_t fault;
  on.read_back(e.fault, &fault, 1);
  check_hop_fault(fault, graph.num_nodes);
  return {e.indptr, e.neighbors, e.positions};
}

std::tuple<Tensor, Tensor, Tensor> sample_hop_cuda(Tensor indptr, Tensor indices, Tensor dst,
                                                   int64_t fanout, std::string pick, int64_t key,
                                                   int64_t hop, int64_t batch) {
  check_csc(indptr, indices);
  check_layout(dst, "dst", 1);
  check_dtype(dst, "dst", indices.scalar_type());
  check_cuda({{indptr, "indptr"}, {indices, "indices"}, {dst, "dst"}});
  const HopDraws draws{pick_from_name(pick), static_cast<uint32_t>(check_fanout(fanout)),
                       static_cast<uint64_t>(key), check_u32(hop, "hop", int64_t{1} << 16),
                       check_u32(batch, "batch", int64_t{1} << 32)};
  return indices.scalar_type() == ScalarType::Int ? run<int32_t>(indptr, indices, dst, draws)
                                                  : run<int64_t>(indptr, indices, dst, draws);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("sample_hop", TORCH_BOX(&sample_hop_cuda)); }

}  // namespace gnnbench::cuda
