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

// Joins the pieces of the hops into one CSC; of a row's offsets only the ends are kept.
struct Joined {
  Tensor indptr, indices, positions;
};

Joined join(const std::vector<Tensor>& indptrs, const std::vector<Tensor>& locals,
            const std::vector<Tensor>& positions, bool with_positions) {
  int64_t rows = 0, edges = 0;
  for (const Tensor& t : indptrs) rows += t.numel() - 1;
  for (const Tensor& t : locals) edges += t.numel();
  if (edges > INT32_MAX) fail("a batch of ", edges, " edges does not fit int32 blocks");
  Joined out{empty_cpu(rows + 1, ScalarType::Int), empty_cpu(edges, ScalarType::Int),
             empty_cpu(with_positions ? edges : 0, ScalarType::Long)};
  int32_t* indptr = data<int32_t>(out.indptr);
  int64_t row = 0, edge = 0;
  indptr[0] = 0;
  const auto copy = [](const Tensor& from, void* to) {
    const size_t bytes = static_cast<size_t>(from.numel()) * from.element_size();
    if (bytes) std::memcpy(to, from.data_ptr(), bytes);
  };
  for (size_t h = 0; h < indptrs.size(); ++h) {
    const int32_t* piece = data<const int32_t>(indptrs[h]);
    const int64_t n = indptrs[h].numel() - 1;
    for (int64_t i = 1; i <= n; ++i) indptr[row + i] = static_cast<int32_t>(edge) + piece[i];
    copy(locals[h], data<int32_t>(out.indices) + edge);
    if (with_positions) copy(positions[h], data<int64_t>(out.positions) + edge);
    row += n;
    edge += locals[h].numel();
  }
  return out;
}

Tensor prefix(Tensor& t, int64_t n) { return torch::stable::narrow(t, 0, 0, n); }

template <class Id>
std::vector<Tensor> run(const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
                        const std::vector<int64_t>& fanouts, HopDraws draws, bool only_new,
                        bool with_positions) {
  const Csc<Id> csc = csc_of<Id>(indptr, indices);
  Tensor known = seeds_as_ids<Id>(seeds, csc.num_nodes);
  std::vector<Tensor> indptrs, locals, positions, nodes;
  int64_t first = 0;  // of the hop's destinations among the known nodes
  for (size_t h = 0; h < fanouts.size(); ++h) {
    draws.hop = static_cast<uint32_t>(h);
    draws.fanout = static_cast<uint32_t>(fanouts[h]);
    const int64_t count = known.numel();
    HopEdges e = sample_one_hop(csc, data<const Id>(known) + first, count - first, draws,
                                with_positions, h == 0 ? "seeds" : "indices");
    Renamed r = rename_ids(data<const Id>(known), count, data<const Id>(e.neighbors),
                           e.neighbors.numel(), static_cast<uint64_t>(csc.num_nodes), "seeds");
    indptrs.push_back(e.indptr);
    locals.push_back(r.local);
    positions.push_back(e.positions);
    nodes.push_back(r.src_nodes);
    known = r.src_nodes;
    if (only_new) first = count;
  }
  std::vector<Tensor> out;
  if (only_new && !fanouts.empty()) {
    Joined all = join(indptrs, locals, positions, with_positions);
    int64_t rows = 0, edges = 0;
    for (size_t h = 0; h < fanouts.size(); ++h) {
      rows += indptrs[h].numel() - 1;
      edges += locals[h].numel();
      out.push_back(prefix(all.indptr, rows + 1));
      out.push_back(prefix(all.indices, edges));
      out.push_back(prefix(known, nodes[h].numel()));
      if (with_positions) out.push_back(prefix(all.positions, edges));
    }
    return out;
  }
  for (size_t h = 0; h < fanouts.size(); ++h) {
    out.push_back(indptrs[h]);
    out.push_back(locals[h]);
    out.push_back(nodes[h]);
    if (with_positions) out.push_back(positions[h]);
  }
  return out;
}

std::vector<Tensor> sample_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                               std::vector<int64_t> fanouts, std::string pick, std::string frontier,
                               int64_t key, int64_t batch, bool with_positions) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cpu(indptr, "indptr");
  check_cpu(indices, "indices");
  check_cpu(seeds, "seeds");
  check_fanouts(fanouts);
  const bool only_new = new_frontier_from_name(frontier);
  const HopDraws draws{pick_from_name(pick), 0, static_cast<uint64_t>(key), 0,
                       check_u32(batch, "batch", int64_t{1} << 32)};
  return indices.scalar_type() == ScalarType::Int
             ? run<int32_t>(indptr, indices, seeds, fanouts, draws, only_new, with_positions)
             : run<int64_t>(indptr, indices, seeds, fanouts, draws, only_new, with_positions);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("sample", TORCH_BOX(&sample_cpu)); }

}  // namespace gnnbench
