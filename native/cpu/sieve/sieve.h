// SIEVE's queue (Zhang et al., NSDI 2024): who is evicted where rows are inserted one by one.
//
// Slots are linked from the oldest to the newest; nothing in the queue moves. The hand goes from
// old to new and from the newest to the oldest again. On its way it clears marks, and the first
// slot without one is filled anew and becomes the newest.
//
//   oldest -> ... -> behind -> hand -> ... -> newest
#pragma once

#include <cstdint>

namespace gnnbench {

constexpr int64_t kNone = -1;

struct SieveState {  // as it lies in the tensor
  int64_t filled, oldest, newest, hand, behind;
};

struct SieveQueue {
  int64_t* nodes;    // [capacity] whose row a slot has
  int32_t* newer;    // [capacity] the slot that was filled next
  uint8_t* visited;  // [capacity]
  SieveState* state;
  int64_t capacity;
};

// Inserts ids[0 .. n), none of which is in the queue, in their order. slots[i]: where ids[i] is
// once all are inserted, or kNone; evicted[0 .. n): nodes that had to go, in their order. Returns
// how many those are, or kNone where the links or the state are those of no queue.
int64_t sieve_insert(const SieveQueue& queue, const int64_t* ids, int64_t n, int32_t* slots,
                     int64_t* evicted);

}  // namespace gnnbench
