// A whole batch in one dispatch: per hop, sample and rename.
#include <cstring>
#include <vector>

#include "bindings/cpu/hop.h"

namespace gnnbench {
namespace {

template <class Id>
Tensor seeds_as_ids(const Tensor& seeds, int64_t num_nodes) {
  Tensor out = empty_cpu(seeds.numel(), kIdType<Id>);
  Id* to = data<Id>(out);
  const void* from = seeds.data_ptr();
  const bool narrow = seeds.scalar_type() == ScalarType::Int;
  for (int64_t i = 0, n = seeds.numel(); i < n; ++i) {
    const int64_t id =
        narrow ? static_cast<const int32_t*>(from)[i] : static_cast<const int64_t*>(from)[i];
    if (id < 0 || id >= num_nodes) {
      fail("seeds holds the id ", id, " at position ", i, ", the graph has the nodes 0 to ",
           num_nodes - 1);
    }
    to[i] = static_cast<Id>(id);
  }
  return out;
}

// A block before it is joined with others. `carried` is what goes with each edge: positions, the
// weights of random walks, or nothing.
struct Hop {
  Tensor indptr, local, src_nodes, carried;
};

Tensor prefix(Tensor& t, int64_t n) { return torch::stable::narrow(t, 0, 0, n); }

// Copies `from` to the elements of `to` from `at` on.
void place(const Tensor& from, int64_t at, const Tensor& to) {
  const size_t size = from.element_size(), bytes = static_cast<size_t>(from.numel()) * size;
  if (bytes) std::memcpy(data<char>(to) + at * size, from.data_ptr(), bytes);
}

// With the frontier 'new': one CSC of all hops' rows, whose prefixes are the blocks.
std::vector<Hop> join(const std::vector<Hop>& hops) {
  int64_t rows = 0, edges = 0, carried = 0;
  for (const Hop& hop : hops) {
    rows += hop.indptr.numel() - 1;
    edges += hop.local.numel();
    carried += hop.carried.numel();
  }
  if (edges > INT32_MAX) fail("a batch of ", edges, " edges does not fit int32 blocks");
  const Hop& last = hops.back();
  Tensor indptr = empty_cpu(rows + 1, ScalarType::Int);
  Tensor indices = empty_cpu(edges, ScalarType::Int);
  Tensor with = empty_cpu(carried, last.carried.scalar_type());
  Tensor nodes = last.src_nodes;
  std::vector<Hop> out;
  rows = edges = carried = 0;
  for (const Hop& hop : hops) {
    const int64_t n = hop.indptr.numel() - 1;
    int32_t* to = data<int32_t>(indptr) + rows;
    const int32_t* from = data<const int32_t>(hop.indptr);
    for (int64_t i = 0; i <= n; ++i) to[i] = static_cast<int32_t>(edges) + from[i];
    place(hop.local, edges, indices);
    place(hop.carried, carried, with);
    rows += n;
    edges += hop.local.numel();
    carried += hop.carried.numel();
    out.push_back({prefix(indptr, rows + 1), prefix(indices, edges),
                   prefix(nodes, hop.src_nodes.numel()), prefix(with, carried)});
  }
  return out;
}

template <class Id>
std::vector<Tensor> run(const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
                        const std::vector<int64_t>& fanouts, HopDraws draws, bool only_new,
                        bool with_positions) {
  const Csc<Id> csc = csc_of<Id>(indptr, indices);
  const bool walks = draws.spec.pick == Pick::kRandomWalk;
  Tensor known = seeds_as_ids<Id>(seeds, csc.num_nodes);
  std::vector<Hop> hops;
  int64_t first = 0;  // of the hop's destinations among the known nodes
  for (size_t h = 0; h < fanouts.size(); ++h) {
    draws.hop = static_cast<uint32_t>(h);
    draws.fanout = static_cast<uint32_t>(fanouts[h]);
    const int64_t count = known.numel();
    HopEdges e = sample_one_hop(csc, data<const Id>(known) + first, count - first, draws,
                                with_positions, h == 0 ? "seeds" : "indices");
    Renamed r = rename_ids(data<const Id>(known), count, data<const Id>(e.neighbors),
                           e.neighbors.numel(), static_cast<uint64_t>(csc.num_nodes), "seeds");
    trace_mark(Stage::kIdMap, static_cast<int>(h));
    hops.push_back({e.indptr, r.local, r.src_nodes, walks ? e.weights : e.positions});
    known = r.src_nodes;
    if (only_new) first = count;
  }
  if (only_new) {
    hops = join(hops);
    trace_mark(Stage::kBlock, kWholeBatch);
  }
  std::vector<Tensor> out;
  for (const Hop& hop : hops) {
    for (const Tensor& t : {hop.indptr, hop.local, hop.src_nodes}) out.push_back(t);
    if (walks || with_positions) out.push_back(hop.carried);
  }
  return out;
}

std::vector<Tensor> sample_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                               std::vector<int64_t> fanouts, std::string pick,
                               std::vector<Tensor> tables, std::vector<int64_t> walk,
                               std::string frontier, int64_t key, int64_t batch,
                               bool with_positions) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cpu(indptr, "indptr");
  check_cpu(indices, "indices");
  check_cpu(seeds, "seeds");
  check_fanouts(fanouts);
  const bool only_new = new_frontier_from_name(frontier);
  const HopDraws draws{pick_spec(pick, tables, walk, indices.numel(), cpu_pointer), 0,
                       static_cast<uint64_t>(key), 0, check_u32(batch, "batch", int64_t{1} << 32)};
  return indices.scalar_type() == ScalarType::Int
             ? run<int32_t>(indptr, indices, seeds, fanouts, draws, only_new, with_positions)
             : run<int64_t>(indptr, indices, seeds, fanouts, draws, only_new, with_positions);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("sample", TORCH_BOX(&sample_cpu)); }

}  // namespace gnnbench
