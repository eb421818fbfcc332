// SIEVE's queue (Zhang et al., NSDI 2024): selects victims while rows are inserted one by one.
//
// Slots are linked from the oldest to the newest and never move. The hand goes from old to new and
// wraps from the newest to the oldest. It clears the marks that it passes. The first slot without a
// mark is refilled and becomes the newest.
//
//   oldest -> ... -> behind -> hand -> ... -> newest
#pragma once

#include <cstdint>

namespace gnnbench {

constexpr int64_t kNone = -1;

struct SieveState {  // layout of the tensor
  int64_t filled, oldest, newest, hand, behind;
};

struct SieveQueue {
  int64_t* nodes;    // [capacity] the node whose row a slot holds
  int32_t* newer;    // [capacity] the slot that was filled next
  uint8_t* visited;  // [capacity]
  SieveState* state;
  int64_t capacity;
};

// Inserts ids[0 .. n), none of which is in the queue, in order. slots[i]: the slot of ids[i] after
// all insertions, or kNone. evicted[0 .. n): the evicted nodes in order. Returns the number of
// evicted nodes, or kNone where the links or the state are invalid.
int64_t sieve_insert(const SieveQueue& queue, const int64_t* ids, int64_t n, int32_t* slots,
                     int64_t* evicted);

}  // namespace gnnbench
