// R-MAT graphs: code that CPU and GPU share. Parameters: gnnbench/datasets/generators/rmat.py.
#pragma once

#include <cstdint>

#include "gnnbench/rng.h"

namespace gnnbench::rmat {

constexpr int kBitsPerBlock = 8;  // levels of the quadtree, 16 random bits each
constexpr int kMaxScale = 31;     // so that a key, target << scale | source, has a spare bit

struct Law {
  uint64_t key;
  int scale;         // log2 of the number of nodes
  uint32_t ends[3];  // cumulative probabilities of quadrants (0, 0), (0, 1), (1, 0), in 1/65536

  GNNBENCH_HD uint64_t nodes() const { return uint64_t{1} << scale; }
  GNNBENCH_HD int blocks() const { return (scale + kBitsPerBlock - 1) / kBitsPerBlock; }
};

// The bits of an edge's ends that one block determines (source in the lower byte, target in the
// upper one).
GNNBENCH_HD uint32_t quadrants(const Law& law, const uint32_t (&words)[4]) {
  uint32_t source = 0, target = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int bit = 0; bit < kBitsPerBlock; ++bit) {
    const uint32_t u = (words[bit / 2] >> (16 * (bit % 2))) & 0xFFFFu;
    const bool in_source = u >= law.ends[1];
    const bool in_target = (u >= law.ends[0] && !in_source) || u >= law.ends[2];
    source |= static_cast<uint32_t>(in_source) << bit;
    target |= static_cast<uint32_t>(in_target) << bit;
  }
  return target << kBitsPerBlock | source;
}

struct Ends {
  uint32_t source, target;
};

// The ends of an edge before the nodes are relabelled.
GNNBENCH_HD Ends ends_of(const Law& law, uint64_t edge) {
  Ends ends{0, 0};
  for (int block = 0; block < law.blocks(); ++block) {
    const Philox4 drawn =
        philox4x32(law.key, Philox4{static_cast<uint32_t>(edge), static_cast<uint32_t>(edge >> 32),
                                    static_cast<uint32_t>(block), 0});
    const uint32_t words[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
    const uint32_t both = quadrants(law, words);
    ends.source |= (both & 0xFFu) << (kBitsPerBlock * block);
    ends.target |= (both >> kBitsPerBlock) << (kBitsPerBlock * block);
  }
  const auto mask = static_cast<uint32_t>(law.nodes() - 1);
  return Ends{ends.source & mask, ends.target & mask};
}

}  // namespace gnnbench::rmat
