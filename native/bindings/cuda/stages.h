// The stages of a hop on tensors: shared by the single-stage operators and the whole-batch one.
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
  Tensor positions;       // int64 [edges], empty unless asked for and of random walks
  Tensor weights;         // float32 [edges] of random walks, else empty
  Scratch scratch;        // keeps `faults` alive
  const int64_t* faults;  // on the device: the hop's once the pick has run
};

// Degree pass, scan, pick; `base` is added to the offsets of the result. Waits for the device once,
// to read the number of edges. The pick itself is only enqueued: `faults` are to be looked
// at by the caller's next synchronisation.
template <class Id>
HopEdges sample_one_hop(const OnDevice& on, const Csc<Id>& graph, Vertices dst, int64_t n,
                        const HopDraws& draws, int32_t base, bool with_positions,
                        const char* dst_name);

struct Renamed {
  Tensor src_nodes;  // ids [num_src]
  Tensor local;      // int32 [neighbors]
};

// The three-pass id map. Waits for the device once, to read the number of nodes; `hop`, where
// given, reports its faults through it.
template <class Id>
Renamed rename_ids(const OnDevice& on, IdMapItems<Id> items, const char* dst_name,
                   const HopEdges* hop, int64_t num_nodes);

// What Fused-Map's kernels alone make of the neighbours of several hops.
struct FusedNamed {
  Tensor src_nodes;           // ids; undefined where `max_nodes` was too small
  std::vector<Tensor> local;  // int32, by hop
  bool fits;
};

// One table for all hops, room for `max_nodes` nodes. Waits for the device once; `drawn`, where
// given, drew the neighbours and reports its faults through it.
template <class Id>
FusedNamed fused_names(const OnDevice& on, const Tensor& dst, const std::vector<Tensor>& neighbors,
                       int64_t max_nodes, const char* dst_name, const HopEdges* drawn,
                       int64_t num_nodes);

}  // namespace gnnbench::cuda
