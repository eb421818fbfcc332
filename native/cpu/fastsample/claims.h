// Nodes first seen in a hop, by the workers that saw them.
//
// A worker reserves blocks of a pool, so that it hands out ids without asking the others: known +
// place. Places are left out only where a worker's last block is not full, so that hardly any id
// changes when the pool is closed up once the hop is over:
//
//   nodes    | a b c d .. | e f . .   | g h i j .. | k . . .   |     place = block * kClaimBlock +
//   i filled     kClaimBlock  2           kClaimBlock  1 final id   known + place .......... |
//   bases[block] + i
//                                     dense: the first place left out
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
  int32_t* bases;   // [claim_blocks(...)], once closed up
  std::atomic<int64_t> blocks{0};
  int64_t dense = 0;

  // Sets bases and dense; returns the number of ids, `known` and new.
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

// One worker's hold on the pool. A block is marked as filled when it is left.
template <class Id>
class Claimer {
 public:
  explicit Claimer(Claims<Id>& claims) : claims_(claims) {}
  ~Claimer() { leave(); }
  Claimer(const Claimer&) = delete;
  Claimer& operator=(const Claimer&) = delete;

  // Room of at least one; advance() by what was used of it.
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
