#include "cpu/sieve/sieve.h"

namespace gnnbench {
namespace {

// Removes the next victim's slot from the queue. Returns kNone where the queue is invalid.
int64_t take_out(const SieveQueue& q) {
  SieveState& s = *q.state;
  // Two passes clear every mark, so they reach a slot without one.
  for (int64_t steps = 2 * q.capacity + 1; steps > 0; --steps) {
    if (s.hand == kNone) {
      s.hand = s.oldest;
      s.behind = kNone;
    }
    const int64_t slot = s.hand;
    if (slot < 0 || slot >= q.capacity) return kNone;
    const int64_t next = q.newer[slot];
    if (next < kNone || next >= q.capacity) return kNone;
    s.hand = next;
    if (q.visited[slot] != 0) {
      q.visited[slot] = 0;
      s.behind = slot;
      continue;
    }
    if (s.behind == kNone) {
      s.oldest = next;
    } else {
      q.newer[s.behind] = static_cast<int32_t>(next);
    }
    if (s.newest == slot) s.newest = s.behind;
    return slot;
  }
  return kNone;
}

}  // namespace

int64_t sieve_insert(const SieveQueue& queue, const int64_t* ids, int64_t n, int32_t* slots,
                     int64_t* evicted) {
  SieveState& s = *queue.state;
  int64_t gone = 0;
  for (int64_t i = 0; i < n; ++i) {
    slots[i] = static_cast<int32_t>(kNone);
    if (queue.capacity == 0) continue;
    int64_t slot = s.filled;
    if (slot < queue.capacity) {
      ++s.filled;
    } else {
      slot = take_out(queue);
      if (slot == kNone) return kNone;
      evicted[gone++] = queue.nodes[slot];
    }
    queue.nodes[slot] = ids[i];
    queue.visited[slot] = 0;
    queue.newer[slot] = static_cast<int32_t>(kNone);
    if (s.newest == kNone) {
      s.oldest = slot;
    } else {
      queue.newer[s.newest] = static_cast<int32_t>(slot);
    }
    s.newest = slot;
    slots[i] = static_cast<int32_t>(slot);
  }
  // A slot can have been filled more than once: the last node owns it.
  for (int64_t i = 0; i < n; ++i) {
    if (slots[i] >= 0 && queue.nodes[slots[i]] != ids[i]) slots[i] = static_cast<int32_t>(kNone);
  }
  return gone;
}

}  // namespace gnnbench
