// What fused_map and fastsample share on the host's side: memory, the one wait, the answer.
//
// Nothing is known of a batch's sizes when its kernels are enqueued but the capacities allocated
// for it (gnnbench/capacity.h). What it works with is one allocation that torch has back when the
// call returns, so that batch after batch has the same, warm memory:
//
//   | states | tiles | table |
//     zeros    zeros   0xFF
//
// The answer is apart from it, in two allocations (three with positions or weights), so that
// keeping the nodes, as whoever recounts batches does, keeps no edges:
//
//   | indptr 0 | indices 0 | indptr 1 | indices 1 | ...   int32
//   | positions 0 | positions 1 | ...                     int64; of random walks weights, float32
//   | nodes |                                             ids, each hop's a prefix
//
// (with the frontier 'new' one CSC of all hops). Where a capacity is given, a quarter above what
// batches took, the tensors have that size and the kernels write to them. A first batch's capacity
// is a guess, far too large. So its kernels write to scratch, a notification returns the sizes, the
// result is allocated to its own size, and one more kernel copies it.
#pragma once

#include <string>
#include <vector>

#include "bindings/cuda/stages.h"
#include "cuda/fused_map/fused.h"
#include "gnnbench/capacity.h"

namespace gnnbench::cuda {

// The requested batch, validated.
struct FusedRequest {
  FusedRequest(const char* op, const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
               const std::vector<int64_t>& fanouts, const std::string& pick,
               const std::vector<Tensor>& tables, const std::vector<int64_t>& walk,
               const std::string& frontier, bool with_positions,
               const std::vector<int64_t>& capacity);

  const OnDevice on;
  const Tensor& indptr;
  const Tensor& indices;
  const Tensor& seeds;
  const std::vector<int64_t>& capacity;
  PickSpec pick;
  std::vector<int64_t> fanouts;
  FusedWork work;
  bool only_new;
  bool with_positions;  // of each edge: never of random walks
  uint64_t key = 0;
  uint32_t batch = 0;
  const int64_t* place = nullptr;
  int32_t* dense = nullptr;
  const Tensor* state = nullptr;  // of asynchronous submissions, see fused_sample_async
  uint32_t version = 0;           // of its table
};

// The tensors of the blocks; waits for the device once, and again for each time that the batch did
// not fit.
std::vector<Tensor> fused_sample(const FusedRequest& request);

// The same in tensors as large as the capacity, and the sizes on the device; never waits.
std::vector<Tensor> fused_sample_padded(const FusedRequest& request);

// The same, and the sizes to `numbers`, which the device can write. `state` uint8 is what batches
// on one stream are drawn with one after another, zeros at first; a batch leaves what the next one
// of the same capacity needs, so that nothing is cleared between them:
//
//   | states of even versions | of odd ones | tiles | table |
//
// The answer is one number, the bytes that the state must have, where it has fewer: then nothing
// was done. int64 ids and more than kMostVersionedNodes nodes are drawn in scratch that is cleared.
std::vector<Tensor> fused_sample_async(FusedRequest& request, int64_t* numbers, const Tensor& state,
                                       uint32_t version);

}  // namespace gnnbench::cuda
