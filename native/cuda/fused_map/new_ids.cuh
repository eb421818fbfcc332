// Local ids of new nodes.
#pragma once

#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {

struct NewIds {
  uint32_t requested;  // 0 between calls
  uint32_t base;
};

// Returns a distinct number from `counter` for every thread of the block with `wants`, by one
// atomic per block. All threads of the block call it.
template <int kCount>
__device__ inline void new_numbers(const bool (&wants)[kCount], int32_t* counter, NewIds& shared,
                                   uint32_t (&numbers)[kCount]) {
  const unsigned lane = threadIdx.x % 32;
  uint32_t requested = 0;  // by this warp
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const unsigned wanting = __ballot_sync(kAllLanes, wants[i]);
    numbers[i] = requested + __popc(wanting & ((1u << lane) - 1));
    requested += __popc(wanting);
  }
  uint32_t of_warp = 0;
  if (lane == 0 && requested) of_warp = atomicAdd(&shared.requested, requested);
  of_warp = __shfl_sync(kAllLanes, of_warp, 0);
  __syncthreads();
  if (threadIdx.x == 0) {
    // An exchange, because the compiler may hoist a plain read out of the branch, where it would
    // race with this write.
    const uint32_t all = atomicExch(&shared.requested, 0u);
    if (all) shared.base = static_cast<uint32_t>(atomicAdd(counter, static_cast<int32_t>(all)));
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) numbers[i] += shared.base + of_warp;
}

}  // namespace gnnbench::cuda
