// Batched Philox: many blocks at once, so that the compiler can use vector multiplies.
#pragma once

#include <cstdint>

namespace gnnbench {

// Number of blocks computed at a time. Callers pad their arrays to a multiple of it.
constexpr int64_t kPhiloxLanes = 8;

inline int64_t philox_padded(int64_t n) {
  return (n + kPhiloxLanes - 1) / kPhiloxLanes * kPhiloxLanes;
}

// out[4 * i + w] = word w of philox4x32(key, {c0[i], c1[i], c2[i], c3}). n is a multiple of
// kPhiloxLanes.
void philox_blocks(uint64_t key, uint32_t c3, const uint32_t* c0, const uint32_t* c1,
                   const uint32_t* c2, int64_t n, uint32_t* out);

// Computes blocks for arbitrary counters: n rows of four 32-bit words stored as int64. Returns
// false where a word does not fit 32 bits.
bool philox(uint64_t key, const int64_t* counters, int64_t n, int64_t* out);

}  // namespace gnnbench
