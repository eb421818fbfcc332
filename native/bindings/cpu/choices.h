// One hop's picks, row after row, on tensors.
#pragma once

#include "bindings/cpu/hop.h"
#include "cpu/hop/choose.h"

namespace gnnbench {

struct ChosenEdges {
  Tensor indptr;     // int32 [n + 1] for CSC, else empty
  Tensor targets;    // ids [edges] for COO, else empty
  Tensor neighbors;  // ids [edges]
  Tensor positions;  // int64 [edges], empty unless requested
};

// The destinations are nodes. The pick is no random walk.
template <class Id>
ChosenEdges choose_edges(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                         bool with_positions, bool coo) {
  const int hop = static_cast<int>(draws.hop);
  if (n >= INT32_MAX) fail("a hop of ", n, " destinations does not fit int32 blocks");
  const Scratch<int64_t> starts(num_chunks(n, kRowChunk));
  const HopCount count = count_choices(csc, dst, n, draws, starts.ptr);
  if (count.fault != Fault::kNone) throw_on_fault({count.fault, dst[count.where]}, csc.num_nodes);
  if (count.edges > INT32_MAX) fail_hop_edges(draws.hop, count.edges);
  const Scratch<uint32_t> picks(pick_hop_scratch(draws, count.edges));
  ChosenEdges out{empty_cpu(coo ? 0 : n + 1, ScalarType::Int),
                  empty_cpu(coo ? count.edges : 0, kIdType<Id>),
                  empty_cpu(count.edges, kIdType<Id>),
                  empty_cpu(with_positions ? count.edges : 0, ScalarType::Long)};
  const Choices<Id> to{coo ? nullptr : data<int32_t>(out.indptr),
                       coo ? data<Id>(out.targets) : nullptr, data<Id>(out.neighbors),
                       with_positions ? data<int64_t>(out.positions) : nullptr};
  trace_mark(Stage::kPrepare, hop);
  throw_on_fault(choose(csc, dst, n, draws, starts.ptr, picks.ptr, to), csc.num_nodes);
  trace_mark(Stage::kPick, hop);
  return out;
}

}  // namespace gnnbench
