// A whole batch in one dispatch, hop by hop as in DGL: degree pass, scan, pick, id map. Two host
// synchronisations per hop (its edges, its nodes), no others, with any id map.
#include "bindings/cuda/whole_batch.h"
#include "gnnbench/capacity.h"

namespace gnnbench::cuda {
namespace {

// Relabels one hop by Fused-Map's kernels: known nodes first, then new ones in any order.
template <class Id>
Renamed name_hop(const OnDevice& on, const Tensor& known, const HopEdges& e, int64_t num_nodes) {
  const int64_t items = known.numel() + e.neighbors.numel();
  if (items > kFusedMaxSlots / 4) fail(items, " ids in one hop do not fit one map");
  const FusedNamed named = fused_names<Id>(on, known, {e.neighbors}, items, "seeds", &e, num_nodes);
  return {named.src_nodes, named.local[0]};
}

template <class Id>
std::vector<Tensor> run(const OnDevice& on, const Tensor& indptr, const Tensor& indices,
                        const Tensor& seeds, const std::vector<int64_t>& fanouts, HopDraws draws,
                        bool only_new, bool with_positions, IdMap id_map, RowTeam team, bool coo) {
  const Csc<Id> graph = csc_of<Id>(on, indptr, indices);
  const bool walks = draws.spec.pick == Pick::kRandomWalk;
  // The first degree pass checks the original seeds. Only later passes may use the narrowed ones.
  Vertices dst{seeds.data_ptr(), seeds.scalar_type() == ScalarType::Long};
  Tensor known = seeds.scalar_type() == kIdType<Id> ? seeds : torch::stable::to(seeds, kIdType<Id>);
  int64_t first = 0;  // index of the hop's first destination among the known nodes
  int64_t total = 0;
  std::vector<BatchHop> hops;
  for (size_t h = 0; h < fanouts.size(); ++h) {
    draws.hop = static_cast<uint32_t>(h);
    draws.fanout = static_cast<uint32_t>(fanouts[h]);
    const int64_t count = known.numel();
    HopEdges e = sample_one_hop(on, graph, dst, count - first, draws,
                                static_cast<int32_t>(only_new ? total : 0), with_positions,
                                h == 0 ? "seeds" : "indices", team, coo);
    const int64_t edges = e.neighbors.numel();
    total += edges;
    if (only_new && total > INT32_MAX) {
      fail("a batch of ", total, " edges does not fit int32 blocks");
    }
    if (coo) {
      const GlobalEdges<Id> drawn{data<const Id>(e.rows), data<const Id>(e.neighbors),
                                  with_positions ? data<const int64_t>(e.positions) : nullptr,
                                  edges};
      const CooBlock block = coo_block(on, known, drawn, &e, graph.num_nodes, static_cast<int>(h));
      hops.push_back({block.indptr, block.local, block.src_nodes, block.positions, count});
      known = block.src_nodes;
      dst = Vertices{data<const Id>(known), sizeof(Id) == 8};
      continue;
    }
    const IdMapItems<Id> items{data<const Id>(known), count, data<const Id>(e.neighbors), edges};
    const Renamed r = id_map == IdMap::kFused ? name_hop<Id>(on, known, e, graph.num_nodes)
                                              : rename_ids(on, items, "seeds", &e, graph.num_nodes,
                                                           id_map == IdMap::kThreePassProbing);
    trace_mark(on.launch(), Stage::kIdMap, static_cast<int>(h));
    hops.push_back(
        {e.indptr, r.local, r.src_nodes, walks ? e.weights : e.positions, count - first});
    known = r.src_nodes;
    if (only_new) first = count;
    dst = Vertices{data<const Id>(known) + first, sizeof(Id) == 8};
  }
  return answer(on, std::move(hops), only_new, walks || with_positions);
}

std::vector<Tensor> hop_by_hop_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                    std::vector<int64_t> fanouts, std::string pick,
                                    std::vector<Tensor> tables, std::vector<int64_t> walk,
                                    std::string frontier, int64_t key, int64_t batch,
                                    bool with_positions, std::string id_map, std::string worker,
                                    std::string edges) {
  const IdMap map = id_map_from_name(id_map);
  const RowTeam team = rows_by_block(worker, pick) ? RowTeam::kBlock : RowTeam::kByPick;
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cuda({{seeds, "seeds"}});
  check_seed_count(seeds.numel(), indptr.numel() - 1);
  const bool only_new = new_frontier_from_name(frontier);
  const bool coo = coo_from_name(edges, team == RowTeam::kBlock, map, only_new);
  const OnDevice on(seeds, "hop_by_hop");
  const HopDraws draws{pick_spec_on(on, pick, tables, walk, indices.numel()), 0,
                       static_cast<uint64_t>(key), 0, check_u32(batch, "batch", int64_t{1} << 32)};
  fanouts = fanouts_of(fanouts, draws.spec.pick);
  return indices.scalar_type() == ScalarType::Int
             ? run<int32_t>(on, indptr, indices, seeds, fanouts, draws, only_new, with_positions,
                            map, team, coo)
             : run<int64_t>(on, indptr, indices, seeds, fanouts, draws, only_new, with_positions,
                            map, team, coo);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("hop_by_hop", TORCH_BOX(&hop_by_hop_cuda)); }

}  // namespace gnnbench::cuda
