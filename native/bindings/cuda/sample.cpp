// A whole batch in one dispatch, hop by hop as DGL: degree pass, scan, pick, id map. Two host
// synchronisations a hop (its edges, its nodes), none beside them.
#include <vector>

#include "bindings/cuda/stages.h"

namespace gnnbench::cuda {
namespace {

Tensor prefix(Tensor& t, int64_t n) { return torch::stable::narrow(t, 0, 0, n); }

// Copies `from` to offset `at` (in elements) of `to`, on the stream.
void place(const OnDevice& on, const Tensor& from, int64_t at, const Tensor& to) {
  const size_t size = from.element_size();
  const size_t bytes = static_cast<size_t>(from.numel()) * size;
  if (bytes == 0) return;
  GNNBENCH_CUDA_CALL(on.launch(),
                     cudaMemcpyAsync(data<char>(to) + at * size, from.data_ptr(), bytes,
                                     cudaMemcpyDeviceToDevice, on.launch().stream));
}

struct Hop {
  Tensor indptr, local, positions, src_nodes;
  int64_t rows, edges;  // of this hop alone
};

// With the frontier 'new': one CSC of all hops' rows, whose prefixes are the blocks.
std::vector<Tensor> join(const OnDevice& on, const std::vector<Hop>& hops, bool with_positions) {
  int64_t rows = 0, edges = 0;
  for (const Hop& hop : hops) rows += hop.rows, edges += hop.edges;
  Tensor indptr = on.empty({rows + 1}, ScalarType::Int);
  Tensor indices = on.empty({edges}, ScalarType::Int);
  Tensor positions = with_positions ? on.empty({edges}, ScalarType::Long) : Tensor();
  Tensor nodes = hops.back().src_nodes;
  std::vector<Tensor> out;
  rows = edges = 0;
  for (const Hop& hop : hops) {
    // The offsets already count on from the hop before; its last one is this hop's first.
    place(on, hop.indptr, rows, indptr);
    place(on, hop.local, edges, indices);
    if (with_positions) place(on, hop.positions, edges, positions);
    rows += hop.rows;
    edges += hop.edges;
    out.push_back(prefix(indptr, rows + 1));
    out.push_back(prefix(indices, edges));
    out.push_back(prefix(nodes, hop.src_nodes.numel()));
    if (with_positions) out.push_back(prefix(positions, edges));
  }
  return out;
}

template <class Id>
std::vector<Tensor> run(const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
                        const std::vector<int64_t>& fanouts, HopDraws draws, bool only_new,
                        bool with_positions) {
  const OnDevice on(indptr, "sample");
  const Csc<Id> graph{data<const int64_t>(indptr), data<const Id>(indices), indptr.numel() - 1,
                      indices.numel()};
  // The first degree pass checks the seeds as given; only then may narrowed ones be used.
  Vertices dst{seeds.data_ptr(), seeds.scalar_type() == ScalarType::Long};
  Tensor known = seeds.scalar_type() == kIdType<Id> ? seeds : torch::stable::to(seeds, kIdType<Id>);
  int64_t first = 0;  // of the hop's destinations among the known nodes
  int64_t total = 0;
  std::vector<Hop> hops;
  for (size_t h = 0; h < fanouts.size(); ++h) {
    draws.hop = static_cast<uint32_t>(h);
    draws.fanout = static_cast<uint32_t>(fanouts[h]);
    const int64_t count = known.numel();
    HopEdges e = sample_one_hop(on, graph, dst, count - first, draws,
                                static_cast<int32_t>(only_new ? total : 0), with_positions,
                                h == 0 ? "seeds" : "indices");
    const int64_t edges = e.neighbors.numel();
    total += edges;
    if (only_new && total > INT32_MAX) {
      fail("a batch of ", total, " edges does not fit int32 blocks");
    }
    const IdMapItems<Id> items{data<const Id>(known), count, data<const Id>(e.neighbors), edges};
    Renamed r = rename_ids(on, items, "seeds", &e, graph.num_nodes);
    hops.push_back({e.indptr, r.local, e.positions, r.src_nodes, count - first, edges});
    known = r.src_nodes;
    if (only_new) first = count;
    dst = Vertices{data<const Id>(known) + first, sizeof(Id) == 8};
  }
  if (only_new) return join(on, hops, with_positions);
  std::vector<Tensor> out;
  for (const Hop& hop : hops) {
    out.push_back(hop.indptr);
    out.push_back(hop.local);
    out.push_back(hop.src_nodes);
    if (with_positions) out.push_back(hop.positions);
  }
  return out;
}

std::vector<Tensor> sample_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                std::vector<int64_t> fanouts, std::string pick,
                                std::string frontier, int64_t key, int64_t batch,
                                bool with_positions) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cuda({{indptr, "indptr"}, {indices, "indices"}, {seeds, "seeds"}});
  check_fanouts(fanouts);
  const bool only_new = new_frontier_from_name(frontier);
  const HopDraws draws{pick_from_name(pick), 0, static_cast<uint64_t>(key), 0,
                       check_u32(batch, "batch", int64_t{1} << 32)};
  return indices.scalar_type() == ScalarType::Int
             ? run<int32_t>(indptr, indices, seeds, fanouts, draws, only_new, with_positions)
             : run<int64_t>(indptr, indices, seeds, fanouts, draws, only_new, with_positions);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("sample", TORCH_BOX(&sample_cuda)); }

}  // namespace gnnbench::cuda
