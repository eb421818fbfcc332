// Tasks of a persistent sampler (PGSampler, section III-B) and the set of known tasks (its
// Algorithm 2), shared by both devices.
//
// A task is one 64-bit word, so that a single store publishes a slot of the queue. Zero is an empty
// slot.
//
//   bit  63   62 .. 32           31 .. 0
//        1    chunk              slot of the row   a chunk of the draws of a row that is split
//   bit  63   53 .. 48           47 .. 0
//        0    hop + 1            vertex            a vertex to sample at a hop
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

// Bits 0 to hops of a vertex must fit one word of the set.
constexpr int kMaxTaskHops = 31;

GNNBENCH_HD uint64_t task_word(int64_t vertex, uint32_t hop) {
  return static_cast<uint64_t>(hop + 1) << 48 | static_cast<uint64_t>(vertex);
}
GNNBENCH_HD int64_t task_vertex(uint64_t word) {
  return static_cast<int64_t>(word & 0xFFFFFFFFFFFFull);
}
GNNBENCH_HD uint32_t task_hop(uint64_t word) { return static_cast<uint32_t>(word >> 48) - 1; }

constexpr uint64_t kChunkTask = uint64_t{1} << 63;

GNNBENCH_HD uint64_t chunk_word(uint32_t chunk, uint32_t slot) {
  return kChunkTask | static_cast<uint64_t>(chunk) << 32 | slot;
}
GNNBENCH_HD bool is_chunk(uint64_t word) { return (word & kChunkTask) != 0; }
GNNBENCH_HD uint32_t chunk_of(uint64_t word) {
  return static_cast<uint32_t>(word >> 32) & 0x7FFFFFFFu;
}
GNNBENCH_HD uint32_t chunk_slot(uint64_t word) { return static_cast<uint32_t>(word); }

// The queue's state in one word: enqueued tasks in the high half, finished tasks in the low half.
// One addition reserves slots and counts outstanding work. Equal halves mean that the work is done.
constexpr uint64_t kOneEnqueued = uint64_t{1} << 32;

GNNBENCH_HD uint32_t tasks_enqueued(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
GNNBENCH_HD uint32_t tasks_finished(uint64_t state) { return static_cast<uint32_t>(state); }
GNNBENCH_HD bool all_finished(uint64_t state) {
  return tasks_enqueued(state) == tasks_finished(state);
}

// Where a vertex's bits are: bit h is task (vertex, h), bit `hops` marks a source of the last hop.
// The bits of a vertex are padded to a power of two, so that they never straddle words.
//
//   word  v / per_word:  | .. | vertex 2 | vertex 1 | vertex 0 |    2^(5 - width_log2) vertices
//
// The rank of a vertex among those first met at a hop is a bit count: the stored sum of all earlier
// groups plus the bits counted in its own group.
struct KnownLayout {
  static constexpr int64_t kGroup = 64;  // vertices, in whole words

  uint32_t width_log2;  // 2^width_log2 bits per vertex

  static KnownLayout of(int hops) {
    uint32_t log2 = 0;
    while ((1 << log2) < hops + 1) ++log2;
    return {log2};
  }
  static int64_t groups(int64_t num_nodes) { return (num_nodes + kGroup - 1) / kGroup; }
  GNNBENCH_HD uint32_t group_words() const { return 2u << width_log2; }
  int64_t words(int64_t num_nodes) const { return (num_nodes >> (5 - width_log2)) + 1; }
  GNNBENCH_HD int64_t word(int64_t vertex) const { return vertex >> (5 - width_log2); }
  GNNBENCH_HD uint32_t shift(int64_t vertex) const {
    return (static_cast<uint32_t>(vertex) & ((1u << (5 - width_log2)) - 1)) << width_log2;
  }
  // The bits of one vertex in its word.
  GNNBENCH_HD uint32_t bits(uint32_t word, uint32_t shift) const {
    return (word >> shift) & (0xFFFFFFFFu >> (32 - (1u << width_log2)));
  }
  // The lowest bit of each vertex in a word for which `hop` is the first bit that is set.
  GNNBENCH_HD uint32_t first_met(uint32_t word, uint32_t hop) const {
    const uint32_t lowest = 0xFFFFFFFFu / (0xFFFFFFFFu >> (32 - (1u << width_log2)));
    uint32_t before = 0;
    for (uint32_t h = 0; h < hop; ++h) before |= word >> h;
    return (word >> hop) & ~before & lowest;
  }
};

}  // namespace gnnbench
