// Nodes that workers first saw in a hop, and their local ids.
//
// A worker reserves blocks of a pool, so that it assigns ids without synchronisation: an id is
// known + place. Only the last block of a worker is partly filled, which leaves gaps. Closing the
// gaps after the hop therefore changes hardly any id:
//
//   nodes      | a b c d .. | e f . .   | g h i j .. | k . . .   |
//   place        block * kClaimBlock + i
//   filled       kClaimBlock  2           kClaimBlock  1
//   final id     known + place .......... | bases[block] + i
//                                         dense: the first place without a node
#pragma once

#include <atomic>
#include <cstdint>

#include "cpu/common/parallel.h"

namespace gnnbench {

constexpr int64_t kClaimBlock = 1024;

inline int64_t claim_blocks(int64_t claims, int64_t workers) {
  return num_chunks(claims, kClaimBlock) + workers;
}

template <class Id>
struct Claims {
  Id* nodes;        // [claim_blocks(...) * kClaimBlock]
  int32_t* filled;  // [claim_blocks(...)]
  int32_t* bases;   // [claim_blocks(...)], set by close_up
  std::atomic<int64_t> blocks{0};
  int64_t dense = 0;

  // Computes bases and dense. Returns the number of ids, known and new.
  int64_t close_up(int64_t known) {
    int64_t next = known;
    dense = 0;
    for (int64_t b = 0, n = blocks.load(); b < n; ++b) {
      bases[b] = static_cast<int32_t>(next);
      if (next == known + b * kClaimBlock) dense = next + filled[b] - known;
      next += filled[b];
    }
    return next;
  }

  template <class F>
  void for_each(const F& f) const {
    for (int64_t b = 0, n = blocks.load(); b < n; ++b) {
      for (int32_t i = 0; i < filled[b]; ++i) f(nodes[b * kClaimBlock + i]);
    }
  }
};

// One worker's current block of the pool. Leaving a block records how much of it is filled.
template <class Id>
class Claimer {
 public:
  explicit Claimer(Claims<Id>& claims) : claims_(claims) {}
  ~Claimer() { leave(); }
  Claimer(const Claimer&) = delete;
  Claimer& operator=(const Claimer&) = delete;

  // Number of free places, at least one. Call advance() with the number used.
  int64_t room() {
    if (place_ == end_) {
      leave();
      begin_ = place_ = claims_.blocks.fetch_add(1, std::memory_order_relaxed) * kClaimBlock;
      end_ = begin_ + kClaimBlock;
    }
    return end_ - place_;
  }
  int64_t place() const { return place_; }
  Id* nodes() const { return claims_.nodes + place_; }
  void advance(int64_t used) { place_ += used; }

 private:
  void leave() {
    if (end_ > 0) claims_.filled[begin_ / kClaimBlock] = static_cast<int32_t>(place_ - begin_);
  }

  Claims<Id>& claims_;
  int64_t begin_ = 0, place_ = 0, end_ = 0;
};

}  // namespace gnnbench
