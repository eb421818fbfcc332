// The stages of a hop on tensors: shared by the single-stage operators and the whole-batch one.
#pragma once

#include "bindings/cuda/common.h"

namespace gnnbench::cuda {

struct HopDraws {
  Pick pick;
  uint32_t fanout;
  uint64_t key;
  uint32_t hop;
  uint32_t batch;
};

struct HopEdges {
  Tensor indptr;         // int32 [n + 1]
  Tensor neighbors;      // ids [edges]
  Tensor positions;      // int64 [edges], undefined unless asked for
  Scratch scratch;       // keeps `fault` alive
  const int64_t* fault;  // on the device: a HopFault once the pick has run
};

// Degree pass, scan, pick; `base` is added to the offsets of the result. Waits for the device once,
// to read the number of edges. The pick itself is only enqueued: `fault` is to be looked
// at by the caller's next synchronisation.
template <class Id>
HopEdges sample_one_hop(const OnDevice& on, const Csc<Id>& graph, Vertices dst, int64_t n,
                        const HopDraws& draws, int32_t base, bool with_positions,
                        const char* dst_name);

// Tells of a neighbour that is not a node.
void check_hop_fault(int64_t fault, int64_t num_nodes);

struct Renamed {
  Tensor src_nodes;  // ids [num_src]
  Tensor local;      // int32 [neighbors]
};

// The three-pass id map. Waits for the device once, to read the number of nodes; `hop`, where
// given, has its fault told by it.
template <class Id>
Renamed rename_ids(const OnDevice& on, IdMapItems<Id> items, const char* dst_name,
                   const HopEdges* hop, int64_t num_nodes);

}  // namespace gnnbench::cuda
