// Shared by whole-batch operators: argument checks and the format of the result.
#pragma once

#include <cstring>
#include <vector>

#include "bindings/cpu/hop.h"
#include "cpu/common/team.h"

namespace gnnbench {

// Converts the seeds to the dtype of the graph's ids.
template <class Id>
Tensor seeds_as_ids(const Tensor& seeds, int64_t num_nodes) {
  const void* from = seeds.data_ptr();
  const bool narrow = seeds.scalar_type() == ScalarType::Int;
  const int64_t n = seeds.numel();
  const auto valid_seed = [&](int64_t i) {
    const int64_t id =
        narrow ? static_cast<const int32_t*>(from)[i] : static_cast<const int64_t*>(from)[i];
    if (id < 0 || id >= num_nodes) fail_bad_seed(id, i, num_nodes, "seeds");
    return id;
  };
  if (n > num_nodes) {  // see check_seed_count
    for (int64_t i = 0; i < n; ++i) valid_seed(i);
    fail("seeds holds an id twice: it has ", n, " ids, the graph has ", num_nodes,
         " nodes; every destination must be unique");
  }
  Tensor out = empty_cpu(n, kIdType<Id>);
  Id* to = data<Id>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Id>(valid_seed(i));
  return out;
}

// A block. `carried` belongs to the edges: positions, the weights of random walks, or nothing.
struct BatchHop {
  Tensor indptr, local, src_nodes, carried;
};

// With frontier 'new': one CSC of all hops' rows, whose prefixes are the blocks.
inline std::vector<BatchHop> join_hops(const std::vector<BatchHop>& hops) {
  int64_t rows = 0, edges = 0, carried = 0;
  for (const BatchHop& hop : hops) {
    rows += hop.indptr.numel() - 1;
    edges += hop.local.numel();
    carried += hop.carried.numel();
  }
  if (edges > INT32_MAX) fail("a batch of ", edges, " edges does not fit int32 blocks");
  const BatchHop& last = hops.back();
  Tensor indptr = empty_cpu(rows + 1, ScalarType::Int);
  Tensor indices = empty_cpu(edges, ScalarType::Int);
  Tensor with = empty_cpu(carried, last.carried.scalar_type());
  Tensor nodes = last.src_nodes;
  const auto place = [](const Tensor& from, int64_t at, const Tensor& to) {
    const size_t size = from.element_size(), bytes = static_cast<size_t>(from.numel()) * size;
    if (bytes) std::memcpy(data<char>(to) + at * size, from.data_ptr(), bytes);
  };
  std::vector<BatchHop> out;
  rows = edges = carried = 0;
  for (const BatchHop& hop : hops) {
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

// Returns the blocks in the format of the catalogue.
inline std::vector<Tensor> answer(std::vector<BatchHop> hops, bool only_new, bool with_carried) {
  if (only_new) {
    hops = join_hops(hops);
    trace_mark(Stage::kBlock, kWholeBatch);
  }
  std::vector<Tensor> out;
  for (const BatchHop& hop : hops) {
    for (const Tensor& t : {hop.indptr, hop.local, hop.src_nodes}) out.push_back(t);
    if (with_carried) out.push_back(hop.carried);
  }
  return out;
}

// Validated arguments of a whole batch.
struct BatchTask {
  Tensor indptr, indices, seeds;
  std::vector<int64_t> fanouts;
  HopDraws draws;  // fanout and hop are set per hop
  bool only_new;
  bool with_positions;

  bool walks() const { return draws.spec.pick == Pick::kRandomWalk; }
  void at_hop(size_t hop) {
    draws.hop = static_cast<uint32_t>(hop);
    draws.fanout = static_cast<uint32_t>(fanouts[hop]);
  }
};

inline BatchTask batch_task(const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
                            const std::vector<int64_t>& fanouts, const std::string& pick,
                            const std::vector<Tensor>& tables, const std::vector<int64_t>& walk,
                            const std::string& frontier, int64_t key, int64_t batch,
                            bool with_positions) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cpu(indptr, "indptr");
  check_cpu(indices, "indices");
  check_cpu(seeds, "seeds");
  const HopDraws draws{pick_spec(pick, tables, walk, indices.numel(), cpu_pointer), 0,
                       static_cast<uint64_t>(key), 0, check_u32(batch, "batch", int64_t{1} << 32)};
  return {indptr,        indices,
          seeds,         fanouts_of(fanouts, draws.spec.pick),
          draws,         new_frontier_from_name(frontier),
          with_positions};
}

// Calls body(), which samples a batch, with a team for its passes. Small batches run without a
// team, because waking a thread would cost more than it saves.
template <class F>
std::vector<Tensor> with_team(const BatchTask& task, const F& body) {
  constexpr int64_t kSmall = 16 * 1024;  // edges
  int64_t rows = task.seeds.numel(), edges = 0;
  for (size_t h = 0; h < task.fanouts.size() && edges < kSmall; ++h) {
    const int64_t most = rows * std::min(task.fanouts[h], kSmall);
    rows += most;
    edges += most;
  }
  std::vector<Tensor> out;
  if (edges < kSmall) return body();
  with_team([&] { out = body(); });
  return out;
}

}  // namespace gnnbench
