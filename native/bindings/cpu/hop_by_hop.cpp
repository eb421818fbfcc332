// A whole batch in one dispatch: per hop, sample and relabel.
#include "bindings/cpu/coo_block.h"
#include "bindings/cpu/fused_names.h"

namespace gnnbench {
namespace {

// A hop's edges are written in CSC, then their neighbours are renamed.
template <class Id>
BatchHop csr_hop(const Csc<Id>& csc, const BatchTask& task, const Tensor& known, int64_t first,
                 IdMap id_map) {
  const HopDraws& draws = task.draws;
  const int64_t count = known.numel();
  HopEdges e = sample_one_hop(csc, data<const Id>(known) + first, count - first, draws,
                              task.with_positions, draws.hop == 0 ? "seeds" : "indices");
  const Id* const nodes = data<const Id>(known);
  const Id* const neighbors = data<const Id>(e.neighbors);
  const int64_t edges = e.neighbors.numel();
  const Renamed r = id_map == IdMap::kFused ? fused_names(csc, nodes, count, draws.hop == 0,
                                                          neighbors, edges, draws.hop)
                    : id_map == IdMap::kThreePassProbing
                        ? rename_ids_probing(nodes, count, neighbors, edges, "seeds")
                        : rename_ids(nodes, count, neighbors, edges,
                                     static_cast<uint64_t>(csc.num_nodes), "seeds");
  trace_mark(Stage::kIdMap, static_cast<int>(draws.hop));
  return {e.indptr, r.local, r.src_nodes, task.walks() ? e.weights : e.positions};
}

template <class Id>
std::vector<Tensor> run(BatchTask task, IdMap id_map, bool coo) {
  const Csc<Id> csc = csc_of<Id>(task.indptr, task.indices);
  Tensor known = seeds_as_ids<Id>(task.seeds, csc.num_nodes);
  std::vector<BatchHop> hops;
  int64_t first = 0;  // index of the hop's first destination among the known nodes
  for (size_t h = 0; h < task.fanouts.size(); ++h) {
    task.at_hop(h);
    const int64_t count = known.numel();
    hops.push_back(coo ? coo_hop(csc, task, known) : csr_hop(csc, task, known, first, id_map));
    known = hops.back().src_nodes;
    if (task.only_new) first = count;
  }
  return answer(std::move(hops), task.only_new, task.walks() || task.with_positions);
}

std::vector<Tensor> hop_by_hop_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                                   std::vector<int64_t> fanouts, std::string pick,
                                   std::vector<Tensor> tables, std::vector<int64_t> walk,
                                   std::string frontier, int64_t key, int64_t batch,
                                   bool with_positions, std::string id_map, std::string worker,
                                   std::string edges) {
  const IdMap map = id_map_from_name(id_map);
  if (rows_by_block(worker, pick)) fail("worker 'block' is a block of a GPU; use 'warp' here");
  const bool coo = coo_from_name(edges, true, map, frontier == "new");
  if (coo && pick == "random_walk") fail("edges 'coo' are of picks; a random walk has none");
  const BatchTask task = batch_task(indptr, indices, seeds, fanouts, pick, tables, walk, frontier,
                                    key, batch, with_positions);
  return with_team(task, [&] {
    return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task, map, coo)
                                                    : run<int64_t>(task, map, coo);
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("hop_by_hop", TORCH_BOX(&hop_by_hop_cpu)); }

}  // namespace gnnbench
