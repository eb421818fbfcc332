// Host code shared by fused_map and fastsample: memory, the single synchronisation, the result.
//
// When a batch's kernels are enqueued, only the capacities allocated for it are known, not its
// sizes (gnnbench/capacity.h). The scratch is one allocation, which torch gets back when the call
// returns, so that successive batches reuse the same, warm memory:
//
//   | states | tiles | table |
//     zeros    zeros   0xFF
//
// The result is separate, in two allocations (three with positions or weights), so that a caller
// that keeps the nodes does not keep the edges:
//
//   | indptr 0 | indices 0 | indptr 1 | indices 1 | ...   int32
//   | positions 0 | positions 1 | ...                     int64; for random walks weights, float32
//   | nodes |                                             ids, each hop's are a prefix
//
// (with frontier 'new' one CSC of all hops). If a capacity is given, a quarter above the sizes of
// earlier batches, the tensors have that size and the kernels write to them. The capacity of a
// first batch is a guess, far too large. Then its kernels write to scratch, a notification returns
// the sizes, the result is allocated at its exact size, and one more kernel copies it.
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
  bool with_positions;  // per edge, except for random walks
  uint64_t key = 0;
  uint32_t batch = 0;
  const int64_t* place = nullptr;
  int32_t* dense = nullptr;
  const Tensor* state = nullptr;  // for asynchronous submission, see fused_sample_async
  uint32_t version = 0;           // of the table in `state`
};

// Returns the tensors of the blocks. Synchronises with the host once per attempt.
std::vector<Tensor> fused_sample(const FusedRequest& request);

// The same in tensors of full capacity, with the sizes on the device. Never synchronises.
std::vector<Tensor> fused_sample_padded(const FusedRequest& request);

// The same, with the sizes written to `numbers`, which the device can write. Successive batches on
// one stream share `state` uint8, initially zero. A batch leaves it as the next one of the same
// capacity needs it, so that nothing is cleared between them:
//
//   | states of even versions | of odd ones | tiles | table |
//
// If state is too small, nothing is enqueued and the result is one number, the bytes needed. int64
// ids and graphs of more than kMostVersionedNodes nodes use scratch that is cleared.
std::vector<Tensor> fused_sample_async(FusedRequest& request, int64_t* numbers, const Tensor& state,
                                       uint32_t version);

}  // namespace gnnbench::cuda
