// A whole batch in one dispatch: per hop, sample and relabel.
#include "bindings/cpu/fused_names.h"

namespace gnnbench {
namespace {

template <class Id>
std::vector<Tensor> run(BatchTask task, bool fused) {
  const Csc<Id> csc = csc_of<Id>(task.indptr, task.indices);
  Tensor known = seeds_as_ids<Id>(task.seeds, csc.num_nodes);
  std::vector<BatchHop> hops;
  int64_t first = 0;  // index of the hop's first destination among the known nodes
  for (size_t h = 0; h < task.fanouts.size(); ++h) {
    task.at_hop(h);
    const int64_t count = known.numel();
    HopEdges e = sample_one_hop(csc, data<const Id>(known) + first, count - first, task.draws,
                                task.with_positions, h == 0 ? "seeds" : "indices");
    const Id* const nodes = data<const Id>(known);
    const Id* const neighbors = data<const Id>(e.neighbors);
    const int64_t edges = e.neighbors.numel();
    const Renamed r = fused
                          ? fused_names(csc, nodes, count, h == 0, neighbors, edges, task.draws.hop)
                          : rename_ids(nodes, count, neighbors, edges,
                                       static_cast<uint64_t>(csc.num_nodes), "seeds");
    trace_mark(Stage::kIdMap, static_cast<int>(h));
    hops.push_back({e.indptr, r.local, r.src_nodes, task.walks() ? e.weights : e.positions});
    known = r.src_nodes;
    if (task.only_new) first = count;
  }
  return answer(std::move(hops), task.only_new, task.walks() || task.with_positions);
}

std::vector<Tensor> hop_by_hop_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                                   std::vector<int64_t> fanouts, std::string pick,
                                   std::vector<Tensor> tables, std::vector<int64_t> walk,
                                   std::string frontier, int64_t key, int64_t batch,
                                   bool with_positions, std::string id_map) {
  const bool fused = fused_from_name(id_map);
  const BatchTask task = batch_task(indptr, indices, seeds, fanouts, pick, tables, walk, frontier,
                                    key, batch, with_positions);
  return with_team(task, [&] {
    return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task, fused)
                                                    : run<int64_t>(task, fused);
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("hop_by_hop", TORCH_BOX(&hop_by_hop_cpu)); }

}  // namespace gnnbench
