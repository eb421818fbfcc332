// Stand-in features on the CPU. A 64-bit word of the generator gives four values (16 bytes).
#include "cpu/seeded/seeded.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench::seeded {

namespace {

constexpr int64_t kWordsAtOnce = 4096;  // 32 KiB: the L1 cache
constexpr int64_t kWordsPerBlock = 4;
constexpr int kLanes = 4;  // blocks drawn together, so that their multiplications overlap

// Philox4x64-10 (Salmon et al., SC'11) as in numpy: block b has counter b + 1. Draws blocks first
// to first + n, n a multiple of kLanes.
void draw(const uint64_t (&key)[2], uint64_t first, int64_t n, uint64_t* out) {
  for (int64_t base = 0; base < n; base += kLanes) {
    uint64_t x[kLanes], y[kLanes] = {}, z[kLanes] = {}, w[kLanes] = {};
    for (int i = 0; i < kLanes; ++i) x[i] = first + static_cast<uint64_t>(base + i) + 1;
    uint64_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kLanes; ++i) {
        const auto p0 = static_cast<unsigned __int128>(0xD2E7470EE14C6C93u) * x[i];
        const auto p1 = static_cast<unsigned __int128>(0xCA5A826395121157u) * z[i];
        x[i] = static_cast<uint64_t>(p1 >> 64) ^ y[i] ^ k0;
        z[i] = static_cast<uint64_t>(p0 >> 64) ^ w[i] ^ k1;
        y[i] = static_cast<uint64_t>(p1);
        w[i] = static_cast<uint64_t>(p0);
      }
      k0 += 0x9E3779B97F4A7C15u;
      k1 += 0xBB67AE8584CAA73Bu;
    }
    for (int i = 0; i < kLanes; ++i) {
      uint64_t* to = out + kWordsPerBlock * (base + i);
      to[0] = x[i];
      to[1] = y[i];
      to[2] = z[i];
      to[3] = w[i];
    }
  }
}

// A value is the sum of the two bytes of 16 random bits, shifted to mean 0, plus its centre.
GNNBENCH_CLONES void write_row(const uint16_t* drawn, const int16_t* centre, int64_t width,
                               float* out) {
  for (int64_t j = 0; j < width; ++j) {
    const int32_t sum = (drawn[j] & 0xFF) + (drawn[j] >> 8) - 255 + centre[j];
    out[j] = static_cast<float>(sum) * (1.0f / 256.0f);
  }
}

}  // namespace

bool features(const Spec& spec, int64_t first, int64_t rows, float* out) {
  const int64_t words = (spec.width + 3) / 4;  // per row
  const int64_t chunk = std::max<int64_t>(1, kWordsAtOnce / words);
  std::atomic<bool> good{true};
  parallel_chunks(rows, 64 * chunk, [&](int64_t, int64_t from, int64_t to) {
    constexpr int64_t kStep = kLanes * kWordsPerBlock;
    std::vector<uint64_t> drawn(chunk * words + 2 * kStep);
    for (int64_t begin = from; begin < to; begin += chunk) {
      const int64_t end = std::min(to, begin + chunk);
      const int64_t word = (first + begin) * words;
      const int64_t block = word / kWordsPerBlock;
      const int64_t count = word + (end - begin) * words - block * kWordsPerBlock;
      draw(spec.key, static_cast<uint64_t>(block), (count + kStep - 1) / kStep * kLanes,
           drawn.data());
      const uint64_t* row = drawn.data() + word % kWordsPerBlock;
      for (int64_t i = begin; i < end; ++i, row += words) {
        int64_t label = spec.labels[first + i];
        if (label < -1 || label >= spec.classes) {
          good.store(false, std::memory_order_relaxed);
          break;
        }
        if (label < 0) label = spec.classes;
        write_row(reinterpret_cast<const uint16_t*>(row), spec.centres + label * spec.width,
                  spec.width, out + i * spec.width);
      }
    }
  });
  return good.load();
}

}  // namespace gnnbench::seeded
