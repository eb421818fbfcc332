// The threads that pick for a row: a team. The sequential definitions of gnnbench/pick.h are for
// one thread. The functions of this folder are for the lanes of a warp or for a block and return
// the same results, slot by slot.
//
//   floyd           floyd_lanes         a group of lanes, slots in registers until all are final
//                   floyd_warp          a warp, any fanout
//   fisher_yates    fisher_yates_lanes  like floyd_lanes
//                   fisher_yates_warp
//   reservoir, reservoir_thinned        fill_slots, then offer_row, by any team
//   draws with replacement              independent_slot, one thread per slot
//   random_walk     walk_lanes, then rank_visits, a group of lanes
//
// `Slots` stores a row's positions in shared or global memory: a uint32_t* or a type with its
// operator[].
#pragma once

#include <cstdint>

#include "gnnbench/rng.h"

namespace gnnbench::cuda {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// `width` lanes, a power of two from 8 to 32. The groups of a warp pick concurrently. All lanes of
// the warp call the same functions, with `picks` false if a group has no row.
struct Lanes {
  uint32_t width;
  uint32_t lane;  // within the group

  __device__ uint32_t rank() const { return lane; }
  __device__ uint32_t size() const { return width; }
  __device__ void sync() const { __syncwarp(); }
};

__device__ __forceinline__ Lanes whole_warp() { return Lanes{32, threadIdx.x % 32}; }

// All kThreads of a block.
template <uint32_t kThreads>
struct Block {
  __device__ uint32_t rank() const { return threadIdx.x; }
  __device__ uint32_t size() const { return kThreads; }
  __device__ void sync() const { __syncthreads(); }
};

// The same draws as Draws, four at a time, because consecutive draws share a Philox block.
struct CachedDraws {
  Draws draws;
  uint32_t index = 0xFFFFFFFFu;  // not a valid block: draw / 4 < 2^30
  Philox4 words = {};

  __device__ uint32_t operator()(uint32_t draw) {
    if ((draw >> 2) != index) {
      index = draw >> 2;
      words = draws.block(index);
    }
    const uint32_t low = draw & 1u ? words.y : words.x;
    const uint32_t high = draw & 1u ? words.w : words.z;
    return draw & 2u ? high : low;
  }
};

}  // namespace gnnbench::cuda
