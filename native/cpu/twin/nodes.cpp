// Labels, splits and features of a twin.
//
// Features: 4 bytes written and a quarter of a Philox word computed per value. At about 3 ns per
// word and core, the writes dominate on several cores.
#include <algorithm>
#include <vector>

#include "cpu/common/parallel.h"
#include "cpu/common/philox.h"
#include "cpu/twin/twin.h"
#include "gnnbench/twin.h"

namespace gnnbench::twin {

namespace {

constexpr int64_t kChunk = 8192;

int64_t community_of(const NodeSpec& spec, uint32_t position) {
  const int64_t* end = spec.community_ptr + spec.communities + 1;
  return std::upper_bound(spec.community_ptr, end, int64_t{position}) - spec.community_ptr - 1;
}

}  // namespace

void labels(const NodeSpec& spec, uint32_t noise, int64_t* out) {
  const Bijection ids(spec.key, kStreamIds, spec.num_nodes);
  parallel_chunks(spec.num_nodes, kChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t id = begin; id < end; ++id) {
      const uint32_t position = ids.inverse(static_cast<uint32_t>(id));
      const auto label = static_cast<uint32_t>(community_of(spec, position) % spec.num_classes);
      out[id] = node_label(spec.key, position, label, spec.num_classes, noise);
    }
  });
}

void splits(const NodeSpec& spec, int64_t home, uint32_t locality, uint32_t degree_bias,
            const int64_t sizes[3], int64_t* const out[3]) {
  const int64_t n = spec.num_nodes;
  const Bijection ids(spec.key, kStreamIds, spec.num_nodes);
  const Bijection ranks(spec.key, kStreamInRank, spec.num_nodes);
  std::vector<uint64_t> by_id(n);
  parallel_chunks(n, kChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t id = begin; id < end; ++id) {
      const uint32_t position = ids.inverse(static_cast<uint32_t>(id));
      const auto rank = static_cast<uint32_t>((uint64_t{ranks(position)} << 16) / n);
      by_id[id] = split_score(spec.key, position, static_cast<uint32_t>(id),
                              community_of(spec, position) < home, rank, locality, degree_bias);
    }
  });
  // Scores are distinct, so three order statistics determine every node's split.
  std::vector<uint64_t> order(by_id);
  uint64_t bound[3];
  int64_t taken = 0;
  auto from = order.begin();
  for (int s = 0; s < 3; ++s) {
    taken += sizes[s];
    bound[s] = ~uint64_t{0};
    if (taken >= n) continue;
    const auto nth = order.begin() + taken;
    std::nth_element(from, nth, order.end());
    bound[s] = *nth;
    from = nth;
  }
  int64_t fill[3] = {0, 0, 0};
  for (int64_t id = 0; id < n; ++id) {
    for (int s = 0; s < 3; ++s) {
      if (by_id[id] < bound[s]) {
        out[s][fill[s]++] = id;
        break;
      }
    }
  }
}

void features(const NodeSpec& spec, int32_t signal, int64_t first, int64_t rows, int64_t dim,
              float* out) {
  if (rows == 0) return;
  const Bijection ids(spec.key, kStreamIds, spec.num_nodes);
  // Pattern of a class: one sign per column, from the bits of the class's stream.
  const int64_t classes = std::min<int64_t>(spec.num_classes, spec.communities);  // that occur
  std::vector<int32_t> patterns(classes * dim);
  for (int64_t c = 0; c < classes; ++c) {
    const Draws bits = draws(spec.key, kStreamCentres, static_cast<uint64_t>(c));
    for (int64_t j = 0; j < dim; ++j) {
      const bool up = (bits(static_cast<uint32_t>(j / 32)) >> (j % 32)) & 1u;
      patterns[c * dim + j] = up ? signal : -signal;
    }
  }
  const int64_t blocks = (dim + 15) / 16;  // per row
  constexpr int64_t kGroup = kPhiloxLanes;
  const int64_t chunk = kGroup * std::max<int64_t>(1, 4096 / dim);
  parallel_chunks(rows, chunk, [&](int64_t, int64_t begin, int64_t end) {
    const int64_t lanes = kGroup * blocks;
    std::vector<uint32_t> words(4 * lanes), c0(lanes), c1(lanes), c2(lanes, kStreamFeatures << 16);
    for (int64_t i = 0; i < lanes; ++i) c0[i] = static_cast<uint32_t>(i % blocks);
    for (int64_t group = begin; group < end; group += kGroup) {
      const int64_t stop = std::min(end, group + kGroup);
      for (int64_t row = group; row < stop; ++row) {
        std::fill_n(c1.begin() + (row - group) * blocks, blocks,
                    ids.inverse(static_cast<uint32_t>(first + row)));
      }
      philox_blocks(spec.key, kTag, c0.data(), c1.data(), c2.data(), lanes, words.data());
      for (int64_t row = group; row < stop; ++row) {
        const uint32_t* word = words.data() + (row - group) * blocks * 4;
        const uint32_t position = c1[(row - group) * blocks];
        const int32_t* pattern = patterns.data() + community_of(spec, position) % classes * dim;
        float* to = out + row * dim;
        for (int64_t j = 0; j < dim; ++j) {
          // Byte j of the words, lowest first, as an odd number in [-255, 255] with mean exactly 0.
          const auto byte = static_cast<int32_t>((word[j / 4] >> (8 * (j % 4))) & 0xFFu);
          to[j] = static_cast<float>(2 * byte - 255 + pattern[j]) * (1.0f / 256.0f);
        }
      }
    }
  });
}

}  // namespace gnnbench::twin
