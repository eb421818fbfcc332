// Draws of many rows. Their Philox blocks are computed together as far as they fit.
#pragma once

#include <cstdint>

#include "cpu/common/philox.h"
#include "gnnbench/pick.h"

namespace gnnbench {

// Draws of one row in order, stored one window at a time.
class WindowedDraws {
 public:
  explicit WindowedDraws(const Draws& draws) : draws_(draws) {}

  uint32_t operator()(uint32_t draw) {
    if (draw >> 2 != index_) {
      index_ = draw >> 2;
      const Philox4 b = draws_.block(index_);
      words_[0] = b.x;
      words_[1] = b.y;
      words_[2] = b.z;
      words_[3] = b.w;
    }
    return words_[draw & 3];
  }

 private:
  Draws draws_;
  uint32_t index_ = UINT32_MAX;
  uint32_t words_[4];
};

// Philox blocks of several rows, computed together.
class DrawBatch {
 public:
  static constexpr int64_t kBlocks = 256;

  bool has_room(int64_t blocks) const { return size_ + blocks <= kBlocks; }

  void add(uint64_t vertex, uint32_t hop, int64_t blocks) {
    const uint32_t low = static_cast<uint32_t>(vertex);
    const uint32_t high = static_cast<uint32_t>((vertex >> 32) & 0xFFFFu) | (hop << 16);
    for (int64_t b = 0; b < blocks; ++b) {
      c0_[size_] = static_cast<uint32_t>(b);
      c1_[size_] = low;
      c2_[size_] = high;
      ++size_;
    }
  }

  // Computes the words of all added blocks, in order, and empties the batch.
  const uint32_t* compute(uint64_t key, uint32_t batch) {
    const int64_t padded = philox_padded(size_);
    for (int64_t i = size_; i < padded; ++i) c0_[i] = c1_[i] = c2_[i] = 0;
    philox_blocks(key, batch, c0_, c1_, c2_, padded, words_);
    size_ = 0;
    return words_;
  }

 private:
  uint32_t c0_[kBlocks], c1_[kBlocks], c2_[kBlocks], words_[4 * kBlocks];
  int64_t size_ = 0;
};

// Processes rows [begin, end) in groups whose draws are computed together. needed(i) returns the
// number of draws of row i and can prefetch. take(i, draw) is called for rows with draws, then
// finish(first, last) for the group.
template <class Needed, class Take, class Finish>
void for_row_draws(const HopDraws& draws, const auto* dst, int64_t begin, int64_t end,
                   const Needed& needed, const Take& take, const Finish& finish) {
  DrawBatch batch;
  for (int64_t group = begin, next; group < end; group = next) {
    // Adds as many rows as fit into the batch. A row that never fits is a group by itself.
    for (next = group; next < end; ++next) {
      const int64_t blocks = (needed(next) + 3) / 4;
      if (!batch.has_room(blocks)) break;
      batch.add(static_cast<uint64_t>(dst[next]), draws.hop, blocks);
    }
    if (next == group) {
      take(group, WindowedDraws(draws.of(dst[group])));
      ++next;
    } else {
      const uint32_t* words = batch.compute(draws.key, draws.batch);
      for (int64_t i = group; i < next; ++i) {
        const int64_t count = needed(i);
        if (count == 0) continue;
        take(i, [words](uint32_t draw) { return words[draw]; });
        words += (count + 3) / 4 * 4;
      }
    }
    finish(group, next);
  }
}

}  // namespace gnnbench
