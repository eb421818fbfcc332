// Parts of the twin's graph generator on the CPU: the plan of how many edges each row draws at each
// level, and the drawing of one row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/common/pages.h"
#include "cpu/common/parallel.h"
#include "gnnbench/twin.h"

namespace gnnbench::twin {

constexpr int64_t kNodeChunk = 8192;

// out[0] = 0, out[i + 1] = value(0) + ... + value(i). Calls value twice per item. Exact, so any
// chunking gives the same sums. Returns the total.
template <class T, class F>
T prefix_sum(int64_t n, T* out, const F& value) {
  std::vector<T> base(num_chunks(n, kNodeChunk) + 1, 0);
  parallel_chunks(n, kNodeChunk, [&](int64_t c, int64_t begin, int64_t end) {
    T sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += value(i);
    base[c + 1] = sum;
  });
  for (size_t c = 1; c < base.size(); ++c) base[c] += base[c - 1];
  out[0] = 0;
  parallel_chunks(n, kNodeChunk, [&](int64_t c, int64_t begin, int64_t end) {
    T sum = base[c];
    for (int64_t i = begin; i < end; ++i) out[i + 1] = sum += value(i);
  });
  return base.back();
}

// Inverse of prefix sums. A table of buckets of 2^shift gives the first candidate.
class InverseCdf {
 public:
  InverseCdf(const uint64_t* prefix, int64_t n) : prefix_(prefix) {
    while ((prefix[n] >> shift_) > static_cast<uint64_t>(2 * n)) ++shift_;
    first_.resize((prefix[n] >> shift_) + 1);
    parallel_chunks(n, kNodeChunk, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const uint64_t size = uint64_t{1} << shift_;
        for (uint64_t b = (prefix[p] + size - 1) >> shift_; (b << shift_) < prefix[p + 1]; ++b) {
          first_[b] = static_cast<uint32_t>(p);
        }
      }
    });
  }

  // Returns the p with prefix[p] <= y < prefix[p + 1].
  uint32_t operator()(uint64_t y) const { return search(first_[y >> shift_], y); }

  // The same for many points, so that the reads of different points overlap.
  void operator()(const uint64_t* points, int64_t n, uint32_t* found) const {
    constexpr int64_t kBlock = 256;
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t end = std::min(n, begin + kBlock);
      for (int64_t i = begin; i < end; ++i) __builtin_prefetch(&first_[points[i] >> shift_]);
      for (int64_t i = begin; i < end; ++i) {
        found[i] = first_[points[i] >> shift_];
        __builtin_prefetch(&prefix_[found[i] + 1]);
      }
      for (int64_t i = begin; i < end; ++i) found[i] = search(found[i], points[i]);
    }
  }

 private:
  uint32_t search(uint32_t p, uint64_t y) const {
    while (prefix_[p + 1] <= y) ++p;
    return p;
  }

  const uint64_t* prefix_;
  int shift_ = 0;
  HugeVector<uint32_t> first_;
};

// One pass of distributing `left` edges among n rows. Row i gets its part of the cumulated shares,
// floor(left * cum[i + 1] / total) - floor(left * cum[i] / total), but at most its room. Returns
// the number distributed, which is `left` if the room equals the share.
template <class Share, class Room>
uint64_t share_out(int64_t n, uint64_t left, const Share& share, const Room& room, uint32_t* take) {
  std::vector<uint64_t> cum(num_chunks(n, kNodeChunk) + 1, 0), given(cum.size(), 0);
  const auto open_share = [&](int64_t i) { return room(i) > 0 ? share(i) : uint64_t{0}; };
  parallel_chunks(n, kNodeChunk, [&](int64_t c, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) cum[c + 1] += open_share(i);
  });
  for (size_t c = 1; c < cum.size(); ++c) cum[c] += cum[c - 1];
  const uint64_t total = cum.back();
  if (total == 0) return 0;
  parallel_chunks(n, kNodeChunk, [&](int64_t c, int64_t begin, int64_t end) {
    uint64_t sum = cum[c], before = mul_div(sum, left, total);
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t own = open_share(i);
      if (own == 0) continue;
      sum += own;
      const uint64_t upto = mul_div(sum, left, total);
      const uint64_t taken = std::min(upto - before, room(i));
      before = upto;
      take[i] += static_cast<uint32_t>(taken);
      given[c] += taken;
    }
  });
  uint64_t all = 0;
  for (const uint64_t g : given) all += g;
  return all;
}

// Set of the positions that one row has drawn at one level.
class DrawnSet {
 public:
  void reset(uint32_t wanted) {
    uint32_t bits = 4;
    while ((uint64_t{1} << bits) < 2 * uint64_t{wanted}) ++bits;
    shift_ = 32 - bits;
    mask_ = (1u << bits) - 1u;
    slots_.assign(size_t{mask_} + 1, kEmpty);
  }

  // Inserts a position. Returns whether it is new.
  bool insert(uint32_t position) {
    uint32_t slot = (position * 0x9E3779B1u) >> shift_;
    while (slots_[slot] != kEmpty) {
      if (slots_[slot] == position) return false;
      slot = (slot + 1) & mask_;
    }
    slots_[slot] = position;
    return true;
  }

 private:
  static constexpr uint32_t kEmpty = 0xFFFFFFFFu;
  uint32_t shift_ = 0, mask_ = 0;
  std::vector<uint32_t> slots_;
};

}  // namespace gnnbench::twin
