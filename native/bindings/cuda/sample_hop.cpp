#include <tuple>

#include "bindings/cuda/notification.h"
#include "bindings/cuda/stages.h"
#include "bindings/fault.h"
#include "cuda/common/scan.h"

namespace gnnbench::cuda {

namespace {

// Host synchronisation, one per hop: the number of edges determines the output sizes.
int64_t read_edges(const OnDevice& on, const int64_t* offsets, int64_t n, const HopDraws& draws,
                   int64_t num_nodes, const char* dst_name) {
  const int64_t* const numbers = read_numbers(on, {offsets + n, 2});
  const int64_t edges = numbers[0];
  throw_on_fault(static_cast<Fault>(numbers[1]), num_nodes, dst_name);
  if (edges > INT32_MAX) fail_hop_edges(draws.hop, edges);
  return edges;
}

}  // namespace

template <class Id>
HopEdges sample_one_hop(const OnDevice& on, const Csc<Id>& graph, Vertices dst, int64_t n,
                        const HopDraws& draws, int32_t base, bool with_positions,
                        const char* dst_name, RowTeam team, bool with_rows) {
  const Launch& launch = on.launch();
  if (n >= INT32_MAX) fail("a hop of ", n, " destinations does not fit int32 blocks");
  const bool walks = draws.spec.pick == Pick::kRandomWalk;
  const int64_t width = walks ? std::min(draws.spec.walk.visits(), draws.fanout) : 0;
  const size_t scan_bytes = scan_scratch_bytes<int64_t>(launch, n + 1);
  const int hop = static_cast<int>(draws.hop);
  Scratch scratch;
  const size_t offsets_at = scratch.add<int64_t>(n + 2);
  const size_t scan_at = scratch.add<char>(static_cast<int64_t>(scan_bytes));
  const size_t ids_at = scratch.add<Id>(n * width);
  const size_t visits_at = scratch.add<uint32_t>(n * width);
  const size_t walk_at =
      scratch.add<char>(walks ? hop_walk_scratch_bytes<Id>(draws.spec.walk, n) : 0);
  scratch.allocate(on);
  int64_t* offsets = scratch.at<int64_t>(offsets_at);
  const Walked<Id> walked{scratch.at<Id>(ids_at), scratch.at<uint32_t>(visits_at), width,
                          scratch.at<char>(walk_at)};

  hop_degrees(launch, graph, dst, n, draws.spec, draws.fanout, offsets);
  if (walks) {
    trace_mark(launch, Stage::kPrepare, hop);
    hop_walk(launch, graph, dst, n, draws, offsets, walked);
    trace_mark(launch, Stage::kPick, hop);
  }
  exclusive_scan(launch, scratch.at<char>(scan_at), scan_bytes, offsets, n + 1);
  const int64_t edges = read_edges(on, offsets, n, draws, graph.num_nodes, dst_name);

  HopEdges out{on.empty({n + 1}, ScalarType::Int),
               on.empty({edges}, kIdType<Id>),
               on.empty({with_positions && !walks ? edges : 0}, ScalarType::Long),
               on.empty({with_rows ? edges : 0}, kIdType<Id>),
               on.empty({walks ? edges : 0}, ScalarType::Float),
               scratch,
               offsets + n + 1};
  const HopOut<Id> to{data<int32_t>(out.indptr), base, data<Id>(out.neighbors),
                      with_positions && !walks ? data<int64_t>(out.positions) : nullptr,
                      with_rows ? data<Id>(out.rows) : nullptr};
  if (walks) {
    trace_mark(launch, Stage::kPrepare, hop);
    hop_walk_compact(launch, n, offsets, walked, to, data<float>(out.weights));
  } else {
    const Tensor slots =
        on.empty({hop_pick_slots(draws.spec.pick, team, draws.fanout, edges)}, ScalarType::Int);
    trace_mark(launch, Stage::kPrepare, hop);
    hop_pick(launch, graph, dst, n, draws, team, offsets, data<uint32_t>(slots), to);
  }
  trace_mark(launch, Stage::kPick, hop);
  return out;
}

template HopEdges sample_one_hop<int32_t>(const OnDevice&, const Csc<int32_t>&, Vertices, int64_t,
                                          const HopDraws&, int32_t, bool, const char*, RowTeam,
                                          bool);
template HopEdges sample_one_hop<int64_t>(const OnDevice&, const Csc<int64_t>&, Vertices, int64_t,
                                          const HopDraws&, int32_t, bool, const char*, RowTeam,
                                          bool);

namespace {

using Answer = std::tuple<Tensor, Tensor, Tensor, Tensor>;

template <class Id>
Answer run(const OnDevice& on, const Tensor& indptr, const Tensor& indices, const Tensor& dst,
           const HopDraws& draws) {
  const Csc<Id> graph = csc_of<Id>(on, indptr, indices);
  HopEdges e = sample_one_hop(on, graph, Vertices{dst.data_ptr(), sizeof(Id) == 8}, dst.numel(),
                              draws, 0, true, "dst");
  // Host synchronisation: this operator must report an invalid graph before it returns.
  throw_on_fault(static_cast<Fault>(*read_numbers(on, {e.faults, 1})), graph.num_nodes, "dst");
  return {e.indptr, e.neighbors, e.positions, e.weights};
}

Answer sample_hop_cuda(Tensor indptr, Tensor indices, Tensor dst, int64_t fanout, std::string pick,
                       std::vector<Tensor> tables, std::vector<int64_t> walk, int64_t key,
                       int64_t hop, int64_t batch) {
  check_csc(indptr, indices);
  check_layout(dst, "dst", 1);
  check_dtype(dst, "dst", indices.scalar_type());
  check_cuda({{dst, "dst"}});
  const OnDevice on(dst, "sample_hop");
  const PickSpec spec = pick_spec_on(on, pick, tables, walk, indices.numel());
  const HopDraws draws{spec, fanout_of(fanout, spec.pick), static_cast<uint64_t>(key),
                       check_u32(hop, "hop", int64_t{1} << 16),
                       check_u32(batch, "batch", int64_t{1} << 32)};
  return indices.scalar_type() == ScalarType::Int ? run<int32_t>(on, indptr, indices, dst, draws)
                                                  : run<int64_t>(on, indptr, indices, dst, draws);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("sample_hop", TORCH_BOX(&sample_hop_cuda)); }

}  // namespace gnnbench::cuda
