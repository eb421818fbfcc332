// A hop by the pipeline that FastSample replaces (section 3.2, Fig. 1), as DGL's: both ends of each
// edge are sampled, both are renamed through a hash table, and the block is converted to CSC. One
// table serves both ends; DGL fills another for destinations.
#pragma once

#include "bindings/cpu/choices.h"
#include "bindings/cpu/whole_batch.h"
#include "cpu/coo/coo.h"

namespace gnnbench {

// All of `known` are destinations.
template <class Id>
BatchHop coo_hop(const Csc<Id>& csc, const BatchTask& task, const Tensor& known) {
  const Id* const nodes = data<const Id>(known);
  const int64_t rows = known.numel();
  const int hop = static_cast<int>(task.draws.hop);
  const ChosenEdges e = choose_edges(csc, nodes, rows, task.draws, task.with_positions, true);
  const int64_t edges = e.neighbors.numel();
  const Scratch<int32_t> targets(edges);
  const Renamed r = rename_ids_probing(nodes, rows, data<const Id>(e.neighbors), edges, "seeds",
                                       data<const Id>(e.targets), targets.ptr);
  trace_mark(Stage::kIdMap, hop);
  const int64_t* const positions = task.with_positions ? data<const int64_t>(e.positions) : nullptr;
  BatchHop block{empty_cpu(rows + 1, ScalarType::Int), empty_cpu(edges, ScalarType::Int),
                 r.src_nodes, empty_cpu(task.with_positions ? edges : 0, ScalarType::Long)};
  const Scratch<int32_t> counts(product_of_sizes(coo_workers(edges), rows, "counts"));
  coo_to_csc({targets.ptr, data<const int32_t>(r.local), positions, edges}, rows, counts.ptr,
             data<int32_t>(block.indptr), data<int32_t>(block.local),
             task.with_positions ? data<int64_t>(block.carried) : nullptr);
  trace_mark(Stage::kBlock, hop);
  return block;
}

}  // namespace gnnbench
