// Counter-based generator: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
// 3", SC'11). The counter never contains the rank, the thread or the schedule.
//
//   key      64 bits   hash of (run seed, epoch, purpose), computed once per epoch on the host
//   counter  c0        draw / 4                              32 bits
//            c1        vertex, low half                      32 bits
//            c2        vertex, high part | hop << 16         16 + 16 bits
//            c3        batch number in the epoch             32 bits
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

struct Philox4 {
  uint32_t x, y, z, w;
};

GNNBENCH_HD uint32_t mul_hi(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
#endif
}

GNNBENCH_HD Philox4 philox4x32(uint64_t key, Philox4 c) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int round = 0; round < 10; ++round) {
    const uint32_t hi0 = mul_hi(0xD2511F53u, c.x), lo0 = 0xD2511F53u * c.x;
    const uint32_t hi1 = mul_hi(0xCD9E8D57u, c.z), lo1 = 0xCD9E8D57u * c.z;
    c = Philox4{hi1 ^ c.y ^ k0, lo1, hi0 ^ c.w ^ k1, lo0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// The draws of one (vertex, hop, batch): draw i is word i % 4 of block i / 4.
struct Draws {
  uint64_t key;
  uint64_t vertex;
  uint32_t hop;
  uint32_t batch;

  GNNBENCH_HD Philox4 block(uint32_t index) const {
    return philox4x32(
        key, Philox4{index, static_cast<uint32_t>(vertex),
                     static_cast<uint32_t>((vertex >> 32) & 0xFFFFu) | (hop << 16), batch});
  }

  GNNBENCH_HD uint32_t operator()(uint32_t draw) const {
    const Philox4 b = block(draw >> 2);
    switch (draw & 3u) {
      case 0: return b.x;
      case 1: return b.y;
      case 2: return b.z;
      default: return b.w;
    }
  }
};

// Uniform integer in [0, n), n >= 1, from one 32-bit draw by multiply and shift. There is no
// rejection, so that the number of draws is known in advance. The bias of one value is at most n /
// 2^32.
GNNBENCH_HD uint32_t bounded(uint32_t draw, uint32_t n) { return mul_hi(draw, n); }

}  // namespace gnnbench
