// Nodes first seen in a hop, by the workers that saw them.
//
// A worker reserves blocks of the pool, so that it hands out names without asking the others; what
// it writes for a node that it claims is the node's place in the pool. Once the hop is over the
// blocks are numbered and a place becomes a local id:
//
//   place          block * kClaimBlock + i             as a code: -2 - place (-1 is 'nobody's')
//   local id       bases[block] + i
//
//   nodes   | a b c d .. | e f . .   | g h i j .. | k . . .   |     every block full but the last
//   filled    kClaimBlock  2           kClaimBlock  1               of each worker
#pragma once

#include <atomic>
#include <cstdint>

#include "cpu/parallel.h"

namespace gnnbench {

constexpr int64_t kClaimBlock = 1024;

inline int64_t claim_blocks(int64_t claims, int64_t workers) {
  return num_chunks(claims, kClaimBlock) + workers;
}

template <class Id>
struct Claims {
  Id* nodes;        // [claim_blocks(...) * kClaimBlock]
  int32_t* filled;  // [claim_blocks(...)]
  int32_t* bases;   // [claim_blocks(...)], once numbered
  std::atomic<int64_t> blocks{0};

  // Local ids from `known` on; returns the first that is left.
  int64_t number(int64_t known) {
    for (int64_t b = 0, n = blocks.load(); b < n; ++b) {
      bases[b] = static_cast<int32_t>(known);
      known += filled[b];
    }
    return known;
  }

  template <class F>
  void for_each(const F& f) const {
    for (int64_t b = 0, n = blocks.load(); b < n; ++b) {
      for (int32_t i = 0; i < filled[b]; ++i) f(nodes[b * kClaimBlock + i]);
    }
  }
};

constexpr int32_t kUnclaimed = -1;

inline int32_t claim_code(int64_t place) { return static_cast<int32_t>(-2 - place); }

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
