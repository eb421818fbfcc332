// A set of ids as a bitmap with ranks. Each word holds the bits of 32 ids and the number of ids in
// the set before them. Membership of an id and its rank in ascending order take one 8-byte read.
// The set takes a quarter of a byte per node, so that the sets of graphs with 100 M nodes fit a
// GPU's L2 cache.
#pragma once

#include <bit>
#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

struct IdWord {
  uint32_t bits;
  uint32_t before;
};
static_assert(sizeof(IdWord) == 8);  // int32 [words, 2] in the operators

constexpr int64_t kIdsPerWord = 32;

GNNBENCH_HD int64_t id_words(int64_t num_nodes) {
  return (num_nodes + kIdsPerWord - 1) / kIdsPerWord;
}

GNNBENCH_HD uint32_t id_bit(int64_t id) {
  return uint32_t{1} << static_cast<uint32_t>(id % kIdsPerWord);
}

GNNBENCH_HD int32_t ids_in(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __popc(bits);
#else
  return std::popcount(bits);
#endif
}

// Rank of an id in the set, or -1 where the set does not contain it or it is out of range.
GNNBENCH_HD int64_t place_of(const IdWord* words, int64_t num_words, int64_t id) {
  if (id < 0 || id / kIdsPerWord >= num_words) return -1;
  const IdWord word = words[id / kIdsPerWord];
  const uint32_t bit = id_bit(id);
  return (word.bits & bit) == 0 ? -1 : int64_t{word.before} + ids_in(word.bits & (bit - 1));
}

// A dense 0/1 matrix of batches by ranks in a set, float16 [pieces, batches, width]. Each piece
// covers `width` consecutive ranks; the first piece starts at rank `first`.
struct Ones {
  uint16_t* at;
  int64_t first, pieces, batches, width;

  // Offset of a batch's entry for a rank, or -1 if no piece covers the rank.
  GNNBENCH_HD int64_t offset(int64_t batch, int64_t place) const {
    const int64_t p = place - first;
    if (place < 0 || p < 0 || p >= pieces * width) return -1;
    return (p / width * batches + batch) * width + p % width;
  }
};

constexpr uint16_t kOne = 0x3C00;  // 1.0 in float16

}  // namespace gnnbench
