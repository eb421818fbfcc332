// The stages of a hop on tensors, shared by the single-stage and whole-batch operators.
#pragma once

#include "bindings/cuda/common.h"
#include "bindings/cuda/trace.h"
#include "bindings/pick_spec.h"
#include "cuda/hop/hop.h"
#include "cuda/id_map/id_map.h"

namespace gnnbench::cuda {

template <class Id>
Csc<Id> csc_of(const OnDevice& on, const Tensor& indptr, const Tensor& indices) {
  return {on.pointer<int64_t>(indptr, "indptr"), on.pointer<Id>(indices, "indices"),
          indptr.numel() - 1, indices.numel()};
}

inline PickSpec pick_spec_on(const OnDevice& on, const std::string& pick,
                             const std::vector<Tensor>& tables, const std::vector<int64_t>& walk,
                             int64_t num_edges) {
  const auto address = [&](const Tensor& t, const char* name) { return on.pointer<void>(t, name); };
  return pick_spec(pick, tables, walk, num_edges, address);
}

struct HopEdges {
  Tensor indptr;          // int32 [n + 1]
  Tensor neighbors;       // ids [edges]
  Tensor positions;       // int64 [edges], empty unless requested and for random walks
  Tensor rows;            // ids [edges], each edge's destination, empty unless requested
  Tensor weights;         // float32 [edges] for random walks, else empty
  Scratch scratch;        // keeps `faults` alive
  const int64_t* faults;  // on the device: valid once the pick has run
};

// Degree pass, scan, pick; adds `base` to the output offsets. Synchronises with the host once, to
// read the number of edges. The pick is only enqueued: the caller's next synchronisation must check
// `faults`.
template <class Id>
HopEdges sample_one_hop(const OnDevice& on, const Csc<Id>& graph, Vertices dst, int64_t n,
                        const HopDraws& draws, int32_t base, bool with_positions,
                        const char* dst_name, RowTeam team = RowTeam::kByPick,
                        bool with_rows = false);

struct Renamed {
  Tensor src_nodes;  // ids [num_src]
  Tensor local;      // int32 [neighbors]
};

// The three-pass id map; with `probes`, each pass probes the table again. Synchronises with the
// host once, to read the number of nodes; also reports the faults of `hop`, if given.
template <class Id>
Renamed rename_ids(const OnDevice& on, IdMapItems<Id> items, const char* dst_name,
                   const HopEdges* hop, int64_t num_nodes, bool probes = false);

// A hop's edges by global ids, in any order.
template <class Id>
struct GlobalEdges {
  const Id* rows;            // destinations
  const Id* cols;            // sources
  const int64_t* positions;  // or null
  int64_t n;
};

struct CooBlock {
  Tensor indptr;     // int32 [destinations + 1]
  Tensor local;      // int32 [edges]
  Tensor src_nodes;  // ids
  Tensor positions;  // int64 [edges], empty without
};

// A block from edges in COO, as DGL's to_block: the three-pass id map that probes again, then the
// local ids of both ends. `known` are the destinations. Synchronises with the host once; also
// reports the faults of `hop`, if given. Marks the stages of hop `number`.
template <class Id>
CooBlock coo_block(const OnDevice& on, const Tensor& known, const GlobalEdges<Id>& edges,
                   const HopEdges* hop, int64_t num_nodes, int number);

// Relabelling of several hops' neighbours by Fused-Map's kernels.
struct FusedNamed {
  Tensor src_nodes;           // ids; undefined if `max_nodes` was too small
  std::vector<Tensor> local;  // int32, by hop
  bool fits;
};

// One table for all hops, with space for `max_nodes` nodes. Synchronises with the host once; also
// reports the faults of `drawn`, which sampled the neighbours, if given.
template <class Id>
FusedNamed fused_names(const OnDevice& on, const Tensor& dst, const std::vector<Tensor>& neighbors,
                       int64_t max_nodes, const char* dst_name, const HopEdges* drawn,
                       int64_t num_nodes);

}  // namespace gnnbench::cuda
