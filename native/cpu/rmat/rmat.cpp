// R-MAT graphs on the CPU: keys of all edges are partitioned by their highest bits, and each part
// is sorted.
//
// Equal keys are equal edges, so the result does not depend on the order in which workers write
// them.
#include "cpu/rmat/rmat.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "cpu/common/multiversion.h"
#include "cpu/common/pages.h"
#include "cpu/common/parallel.h"
#include "cpu/common/philox.h"

namespace gnnbench::rmat {

namespace {

constexpr int64_t kChunk = 1 << 18;  // edges
constexpr int64_t kGroup = 256;      // edges drawn at once
constexpr int kPartBits = 10;        // 1024 parts, so that their write positions stay in the TLB
constexpr int kDigitBits = 11;
constexpr int kMaxDigits = (2 * kMaxScale + kDigitBits - 1) / kDigitBits;
constexpr int64_t kFewKeys = 1 << 11;

static_assert(kGroup % kPhiloxLanes == 0);

#ifdef GNNBENCH_X86
// quadrants() with one 16-bit lane per bit. Comparisons are signed, so all values are shifted by
// 2^15.
class Quadrants {
 public:
  explicit Quadrants(const Law& law) {
    // An end of 65536 would not fit 16 bits; u >= end is u > end - 1.
    for (int i = 0; i < 3; ++i) {
      below_[i] = _mm_set1_epi16(static_cast<int16_t>(static_cast<int>(law.ends[i]) - 1 - 0x8000));
    }
  }

  uint32_t operator()(const uint32_t* words) const {
    const __m128i drawn = _mm_load_si128(reinterpret_cast<const __m128i*>(words));
    const __m128i u = _mm_xor_si128(drawn, _mm_set1_epi16(INT16_MIN));
    const __m128i source = _mm_cmpgt_epi16(u, below_[1]);
    const __m128i target = _mm_or_si128(_mm_andnot_si128(source, _mm_cmpgt_epi16(u, below_[0])),
                                        _mm_cmpgt_epi16(u, below_[2]));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(source, target)));
  }

 private:
  __m128i below_[3];
};
#else
class Quadrants {
 public:
  explicit Quadrants(const Law& law) : law_(law) {}
  uint32_t operator()(const uint32_t* words) const {
    return quadrants(law_, {words[0], words[1], words[2], words[3]});
  }

 private:
  Law law_;
};
#endif

// Writes the keys of edges first to first + n, n at most kGroup. Returns the bitwise or of all
// names read.
uint64_t draw(const Law& law, const Quadrants& quadrants, const int64_t* names, int64_t first,
              int64_t n, uint64_t* keys) {
  uint32_t low[kGroup], high[kGroup], index[kGroup], source[kGroup] = {}, target[kGroup] = {};
  alignas(16) uint32_t words[4 * kGroup];
  for (int64_t i = 0; i < kGroup; ++i) {
    low[i] = static_cast<uint32_t>(first + i);
    high[i] = static_cast<uint32_t>(static_cast<uint64_t>(first + i) >> 32);
  }
  for (int block = 0; block < law.blocks(); ++block) {
    std::fill_n(index, kGroup, static_cast<uint32_t>(block));
    philox_blocks(law.key, 0, low, high, index, philox_padded(n), words);
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t both = quadrants(words + 4 * i);
      source[i] |= (both & 0xFFu) << (kBitsPerBlock * block);
      target[i] |= (both >> kBitsPerBlock) << (kBitsPerBlock * block);
    }
  }
  const auto mask = static_cast<uint32_t>(law.nodes() - 1);
  for (int64_t i = 0; i < n; ++i) {
    __builtin_prefetch(&names[source[i] &= mask]);
    __builtin_prefetch(&names[target[i] &= mask]);
  }
  uint64_t seen = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto to = static_cast<uint64_t>(names[target[i]]);
    const auto from = static_cast<uint64_t>(names[source[i]]);
    seen |= to | from;
    keys[i] = to << law.scale | from;
  }
  return seen;
}

// Sorts n keys by their lowest `bits` bits; the other bits are equal. `other` is scratch of the
// same size. Returns whichever of the two is sorted.
uint64_t* sort_part(uint64_t* keys, uint64_t* other, int64_t n, int bits) {
  if (n <= kFewKeys) {
    std::sort(keys, keys + n);
    return keys;
  }
  const int digits = (bits + kDigitBits - 1) / kDigitBits;
  constexpr uint64_t kMask = (uint64_t{1} << kDigitBits) - 1;
  int64_t at[kMaxDigits][kMask + 1] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < digits; ++d) ++at[d][keys[i] >> (d * kDigitBits) & kMask];
  }
  // The highest digit can include bits that all keys share, which is harmless.
  for (int d = 0; d < digits; ++d) {
    int64_t sum = 0;
    for (int64_t& count : at[d]) sum += std::exchange(count, sum);
    for (int64_t i = 0; i < n; ++i) other[at[d][keys[i] >> (d * kDigitBits) & kMask]++] = keys[i];
    std::swap(keys, other);
  }
  return keys;
}

}  // namespace

bool graph(const Law& law, int64_t num_edges, const int64_t* names, uint64_t* keys, uint64_t* other,
           int64_t* indptr, int32_t* indices) {
  prefer_huge_pages(keys, num_edges * sizeof(uint64_t));
  prefer_huge_pages(other, num_edges * sizeof(uint64_t));
  const int part_bits = std::min(law.scale, kPartBits);
  const int rest_bits = 2 * law.scale - part_bits;
  const int64_t parts = int64_t{1} << part_bits;
  const int64_t chunks = num_chunks(num_edges, kChunk);
  const Quadrants quadrants(law);
  std::atomic<uint64_t> seen{0};
  std::vector<int64_t> place(chunks * parts, 0);  // of each chunk's keys in each part
  parallel_chunks(num_edges, kChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    uint64_t bits = 0;
    for (int64_t i = begin; i < end; i += kGroup) {
      bits |= draw(law, quadrants, names, i, std::min(kGroup, end - i), keys + i);
    }
    seen.fetch_or(bits, std::memory_order_relaxed);
    if (bits >> law.scale) return;
    int64_t* count = place.data() + chunk * parts;
    for (int64_t i = begin; i < end; ++i) ++count[keys[i] >> rest_bits];
  });
  if (seen.load() >> law.scale) return false;

  std::vector<int64_t> start(parts + 1, num_edges);
  int64_t sum = 0;
  for (int64_t part = 0; part < parts; ++part) {
    start[part] = sum;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      sum += std::exchange(place[chunk * parts + part], sum);
    }
  }
  parallel_chunks(num_edges, kChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t* next = place.data() + chunk * parts;
    for (int64_t i = begin; i < end; ++i) other[next[keys[i] >> rest_bits]++] = keys[i];
  });
  const uint64_t mask = law.nodes() - 1;
  const int64_t rows = int64_t{1} << (law.scale - part_bits);  // per part
  parallel_chunks(parts, 1, [&](int64_t part, int64_t, int64_t) {
    const int64_t begin = start[part], n = start[part + 1] - begin;
    const uint64_t* sorted = sort_part(other + begin, keys + begin, n, rest_bits);
    int64_t row = part * rows;
    for (int64_t i = 0; i < n; ++i) {
      const auto target = static_cast<int64_t>(sorted[i] >> law.scale);
      while (row <= target) indptr[row++] = begin + i;
      indices[begin + i] = static_cast<int32_t>(sorted[i] & mask);
    }
    while (row < (part + 1) * rows) indptr[row++] = begin + n;
  });
  indptr[law.nodes()] = num_edges;
  return true;
}

}  // namespace gnnbench::rmat
