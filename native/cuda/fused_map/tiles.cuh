// Offsets of tiles: a single-pass scan by decoupled look-back, see hop.cuh.
#pragma once

#include "cuda/common/atomics.cuh"
#include "cuda/pick/team.cuh"

namespace gnnbench::cuda {

// A tile's word: a status and a sum. Blocks exchange only single words, so relaxed accesses
// suffice.
constexpr uint64_t kTileSum = uint64_t{1} << 62;     // the tile's sum
constexpr uint64_t kTilePrefix = uint64_t{2} << 62;  // the sum of all tiles up to it
constexpr uint64_t kTileValue = kTileSum - 1;

// Called by a warp that has published the tile's sum. Returns the sum of all earlier tiles.
__device__ inline uint64_t look_back(uint64_t* tiles, int64_t tile, uint64_t sum) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  uint64_t before = 0;
  for (int64_t last = tile - 1; last >= 0; last -= 32) {
    const int64_t at = last - lane;
    uint64_t word = at < 0 ? kTilePrefix : 0;
    while (__any_sync(kAllLanes, word == 0)) {
      if (word == 0) word = load_relaxed(tiles + at);
    }
    const unsigned prefixes = __ballot_sync(kAllLanes, word >= kTilePrefix);
    const int stop = prefixes ? __ffs(static_cast<int>(prefixes)) - 1 : 31;
    uint64_t part = lane <= stop ? word & kTileValue : 0;
    for (int step = 16; step > 0; step /= 2) part += __shfl_xor_sync(kAllLanes, part, step);
    before += part;
    if (prefixes) break;
  }
  if (lane == 0 && tile > 0) store_relaxed(tiles + tile, kTilePrefix | (before + sum));
  return before;
}

}  // namespace gnnbench::cuda
