// A whole batch by the passes of fused sampling, with any map from nodes to local ids.
#pragma once

#include "bindings/cpu/whole_batch.h"
#include "cpu/fastsample/fastsample.h"
#include "gnnbench/undo.h"

namespace gnnbench {

// Memory of a hop's claims.
template <class Id>
struct ClaimPool {
  Scratch<Id> nodes;
  Scratch<int32_t> filled, bases;
  Claims<Id> claims;

  explicit ClaimPool(int64_t blocks)
      : nodes(blocks * kClaimBlock),
        filled(blocks),
        bases(blocks),
        claims{nodes.ptr, filled.ptr, bases.ptr} {}
};

// Converts chunk sums to first edges. Returns the total.
inline int64_t chunk_starts(int64_t* sums, int64_t chunks) {
  int64_t total = 0;
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t edges = sums[c];
    sums[c] = total;
    total += edges;
  }
  return total;
}

// `maps.reserve(keys, nodes, known)` makes space for `keys` nodes in maps.map() and keeps the first
// `known` of them, which it already contains. The map is empty on return, also after an error.
template <class Id, class Maps>
std::vector<Tensor> run_fused(BatchTask& task, Maps& maps) {
  const Csc<Id> csc = csc_of<Id>(task.indptr, task.indices);
  Tensor nodes = seeds_as_ids<Id>(task.seeds, csc.num_nodes);
  int64_t known = nodes.numel(), first = 0;
  task.at_hop(0);
  Scratch<Row> rows(known);
  Scratch<int64_t> starts(num_chunks(known, fused_rows(task.draws.fanout)));
  throw_on_fault(fused_rows_of(csc, task.draws, data<const Id>(nodes), known, rows.ptr, starts.ptr),
                 csc.num_nodes);
  Undo forget_nodes([&] {
    for (int64_t i = 0; i < nodes.numel(); ++i) maps.map().clear(data<const Id>(nodes)[i]);
  });

  const size_t num_hops = task.fanouts.size();
  std::vector<BatchHop> hops;
  for (size_t h = 0; h < num_hops; ++h) {
    task.at_hop(h);
    const HopDraws draws = task.draws;
    const Id* dst = data<const Id>(nodes) + first;
    const int64_t n = known - first;
    int64_t edges = chunk_starts(starts.ptr, num_chunks(n, fused_rows(draws.fanout)));
    Tensor indptr, carried, walked;
    if (task.walks()) {  // a walk's edges are known only after it
      HopEdges e = sample_one_hop(csc, dst, n, draws, false, "indices");
      indptr = e.indptr;
      walked = e.neighbors;
      carried = e.weights;
      edges = walked.numel();
    }
    const int64_t workers = fused_workers(n, draws.fanout);
    const int64_t unknown = csc.num_nodes - known;
    const int64_t claims = std::min(edges, workers * unknown);
    const int64_t blocks = claim_blocks(claims, workers);
    if (edges > INT32_MAX || known + blocks * kClaimBlock >= INT32_MAX) {
      fail_hop_edges(static_cast<int64_t>(h), edges);
    }
    maps.reserve(known + std::min(edges, unknown), data<const Id>(nodes), h == 0 ? 0 : known);
    if (h == 0) {
      throw_on_fault(fused_seeds(maps.map(), data<const Id>(nodes), known), csc.num_nodes);
    }
    if (!task.walks()) {
      indptr = empty_cpu(n + 1, ScalarType::Int);
      carried = empty_cpu(task.with_positions ? edges : 0, ScalarType::Long);
    }
    Tensor indices = empty_cpu(edges, ScalarType::Int);
    ClaimPool<Id> pool(blocks);
    // Rows longer than the fanout need draws. There are none if the fanout reaches the number of
    // edges.
    const bool long_rows = draws.fanout > kFusedFanout && draws.fanout < csc.num_edges &&
                           draws.spec.pick == Pick::kFisherYates;
    const Scratch<uint32_t> moved(long_rows && edges > 0 ? workers * 2 * int64_t{draws.fanout} : 0);
    Undo forget_claims([&] { pool.claims.for_each([&](Id node) { maps.map().clear(node); }); });
    const FusedHop<Id> hop{csc,
                           draws,
                           dst,
                           rows.ptr,
                           n,
                           starts.ptr,
                           task.walks() ? data<const Id>(walked) : nullptr,
                           long_rows ? moved.ptr : nullptr,
                           edges,
                           known,
                           workers,
                           &pool.claims,
                           data<int32_t>(indptr),
                           data<int32_t>(indices),
                           task.with_positions && !task.walks() ? data<int64_t>(carried) : nullptr};
    trace_mark(Stage::kPrepare, static_cast<int>(h));
    throw_on_fault(fused_sample(maps.map(), hop), csc.num_nodes);
    trace_mark(Stage::kPick, static_cast<int>(h));

    FusedNext<Id> next{};
    next.last = h + 1 == num_hops;
    next.total = pool.claims.close_up(known);
    next.first = task.only_new ? known : 0;
    next.known = data<const Id>(nodes);
    next.known_rows = rows.ptr;
    Tensor named = empty_cpu(next.total, kIdType<Id>);
    next.nodes = data<Id>(named);
    if (!next.last) task.at_hop(h + 1);
    next.draws = task.draws;
    const int64_t num_next = next.last ? 0 : next.total - next.first;
    Scratch<Row> next_rows(num_next);
    Scratch<int64_t> sums(num_chunks(num_next, fused_rows(next.draws.fanout)));
    next.rows = next_rows.ptr;
    next.sums = sums.ptr;
    throw_on_fault(fused_settle(maps.map(), hop, next), csc.num_nodes);
    trace_mark(Stage::kIdMap, static_cast<int>(h));

    nodes = named;
    forget_claims.armed = false;
    hops.push_back({indptr, indices, nodes, carried});
    first = next.first;
    known = next.total;
    std::swap(rows, next_rows);
    std::swap(starts, sums);
  }
  forget_nodes.armed = false;
  return answer(std::move(hops), task.only_new, task.walks() || task.with_positions);
}

}  // namespace gnnbench
