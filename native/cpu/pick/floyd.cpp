#include "cpu/pick/floyd.h"

#include "cpu/common/multiversion.h"

namespace gnnbench {
namespace {

void floyd_group_scalar(const HopDraws& draws, const uint32_t* low, const uint32_t* high,
                        const uint32_t* degree, uint32_t* out) {
  for (int64_t r = 0; r < kFloydRows; ++r) {
    const Draws own = draws.of(static_cast<int64_t>(uint64_t{high[r]} << 32 | low[r]));
    uint32_t words[4] = {};
    for (uint32_t s = 0; s < draws.fanout; ++s) {
      if (s % 4 == 0) {
        const Philox4 b = own.block(s / 4);
        words[0] = b.x;
        words[1] = b.y;
        words[2] = b.z;
        words[3] = b.w;
      }
      const uint32_t j = degree[r] - draws.fanout + s;
      const uint32_t value = bounded(words[s % 4], j + 1);
      bool repeated = false;
      for (uint32_t t = 0; t < s; ++t) repeated |= out[kFloydRows * t + r] == value;
      out[kFloydRows * s + r] = repeated ? j : value;
    }
  }
}

#ifdef GNNBENCH_X86
constexpr uint32_t kWideFloyd = 512;  // largest fanout for which draws are stored in pairs

// Eight 32-bit values in the low halves of 64-bit lanes, where the multiplier reads them: `a` holds
// rows 0 1 4 5, `b` rows 2 3 6 7. One unpack splits a vector this way and one shuffle joins the
// two.
struct Split {
  __m256i a, b;
};

GNNBENCH_AVX2 inline Split split(__m256i v) {
  const __m256i zero = _mm256_setzero_si256();
  return {_mm256_unpacklo_epi32(v, zero), _mm256_unpackhi_epi32(v, zero)};
}

GNNBENCH_AVX2 inline __m256i high_halves(const Split& s) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(s.a), _mm256_castsi256_ps(s.b), 0xDD));
}

GNNBENCH_AVX2 inline Split multiply(const Split& x, const Split& y) {
  return {_mm256_mul_epu32(x.a, y.a), _mm256_mul_epu32(x.b, y.b)};
}

GNNBENCH_AVX2 inline __m256i load(const uint32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Words x, y, z, w of one block of every row. The multiplier ignores the high halves of the lanes,
// which can hold garbage.
struct Words {
  Split word[4];
};

GNNBENCH_AVX2 inline __m256i mix(__m256i product, __m256i other, __m256i key) {
  return _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product, 32), other), key);
}

struct RoundKeys {
  __m256i first[10], second[10];
};

GNNBENCH_AVX2 inline RoundKeys round_keys(uint64_t key) {
  RoundKeys keys;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int i = 0; i < 10; ++i) {
    keys.first[i] = _mm256_set1_epi64x(k0);
    keys.second[i] = _mm256_set1_epi64x(k1);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return keys;
}

GNNBENCH_AVX2 inline Words philox_rows(const RoundKeys& keys, uint32_t c0, const Split& c1,
                                       const Split& c2, uint32_t c3) {
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  const __m256i first = _mm256_set1_epi64x(c0), last = _mm256_set1_epi64x(c3);
  Split x{first, first}, y = c1, z = c2, w{last, last};
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const Split p0{_mm256_mul_epu32(m0, x.a), _mm256_mul_epu32(m0, x.b)};
    const Split p1{_mm256_mul_epu32(m1, z.a), _mm256_mul_epu32(m1, z.b)};
    x = {mix(p1.a, y.a, keys.first[i]), mix(p1.b, y.b, keys.first[i])};
    z = {mix(p0.a, w.a, keys.second[i]), mix(p0.b, w.b, keys.second[i])};
    y = p1;
    w = p0;
  }
  return {{x, y, z, w}};
}

GNNBENCH_AVX2 void floyd_rows_avx2(const HopDraws& draws, int64_t n, const uint32_t* low,
                                   const uint32_t* high, const uint32_t* degree, uint32_t* out) {
  const RoundKeys keys = round_keys(draws.key);
  const __m256i hop = _mm256_set1_epi32(static_cast<int>(draws.hop << 16));
  const __m256i kept = _mm256_set1_epi32(0xFFFF), one = _mm256_set1_epi32(1);
  const __m256i fanout = _mm256_set1_epi32(static_cast<int>(draws.fanout));
  auto* to = reinterpret_cast<__m256i*>(out);
  for (int64_t row = 0; row < n; row += kFloydRows, to += draws.fanout) {
    const Split c1 = split(load(low + row));
    const Split c2 = split(_mm256_or_si256(_mm256_and_si256(load(high + row), kept), hop));
    __m256i j = _mm256_sub_epi32(load(degree + row), fanout);
    for (uint32_t base = 0; base < draws.fanout; base += 4) {
      const Words words = philox_rows(keys, base / 4, c1, c2, draws.batch);
      for (uint32_t i = 0; i < 4 && base + i < draws.fanout; ++i) {
        const uint32_t s = base + i;
        const __m256i bound = _mm256_add_epi32(j, one);
        const __m256i value = high_halves(multiply(words.word[i], split(bound)));
        __m256i repeated = _mm256_setzero_si256();
        for (uint32_t t = 0; t < s; ++t) {
          const __m256i before = _mm256_loadu_si256(to + t);
          repeated = _mm256_or_si256(repeated, _mm256_cmpeq_epi32(before, value));
        }
        _mm256_storeu_si256(to + s, _mm256_blendv_epi8(value, j, repeated));
        j = bound;
      }
    }
  }
}

// One word of a row per 64-bit lane, in its low half.
struct WideWords {
  __m512i word[4];
};

struct WideKeys {
  __m512i first[10], second[10];
};

GNNBENCH_AVX512 inline WideKeys wide_keys(uint64_t key) {
  WideKeys keys;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int i = 0; i < 10; ++i) {
    keys.first[i] = _mm512_set1_epi64(k0);
    keys.second[i] = _mm512_set1_epi64(k1);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return keys;
}

GNNBENCH_AVX512 inline __m512i mix(__m512i product, __m512i other, __m512i key) {
  return _mm512_ternarylogic_epi64(_mm512_srli_epi64(product, 32), other, key, 0x96);  // xor
}

GNNBENCH_AVX512 inline WideWords philox_rows(const WideKeys& keys, uint32_t c0, __m512i c1,
                                             __m512i c2, uint32_t c3) {
  const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
  __m512i x = _mm512_set1_epi64(c0), y = c1, z = c2, w = _mm512_set1_epi64(c3);
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const __m512i p0 = _mm512_mul_epu32(m0, x), p1 = _mm512_mul_epu32(m1, z);
    x = mix(p1, y, keys.first[i]);
    z = mix(p0, w, keys.second[i]);
    y = p1;
    w = p0;
  }
  return {{x, y, z, w}};
}

GNNBENCH_AVX512 inline __m512i wide(__m256i values) { return _mm512_cvtepu32_epi64(values); }

// Compares two draws of eight rows at once: pairs[p] holds draws 2 p and 2 p + 1.
GNNBENCH_AVX512 void floyd_rows_avx512(const HopDraws& draws, int64_t n, const uint32_t* low,
                                       const uint32_t* high, const uint32_t* degree,
                                       uint32_t* out) {
  const WideKeys keys = wide_keys(draws.key);
  const __m256i hop = _mm256_set1_epi32(static_cast<int>(draws.hop << 16));
  const __m256i kept = _mm256_set1_epi32(0xFFFF), one = _mm256_set1_epi32(1);
  const __m256i fanout = _mm256_set1_epi32(static_cast<int>(draws.fanout));
  auto* to = reinterpret_cast<__m256i*>(out);
  __m512i pairs[kWideFloyd / 2];
  for (int64_t row = 0; row < n; row += kFloydRows, to += draws.fanout) {
    const __m512i c1 = wide(load(low + row));
    const __m512i c2 = wide(_mm256_or_si256(_mm256_and_si256(load(high + row), kept), hop));
    __m256i j = _mm256_sub_epi32(load(degree + row), fanout), last = j;
    for (uint32_t base = 0; base < draws.fanout; base += 4) {
      const WideWords words = philox_rows(keys, base / 4, c1, c2, draws.batch);
      for (uint32_t i = 0; i < 4 && base + i < draws.fanout; ++i) {
        const uint32_t s = base + i;
        const __m256i bound = _mm256_add_epi32(j, one);
        const __m512i product = _mm512_mul_epu32(words.word[i], wide(bound));
        const __m256i value = _mm512_cvtepi64_epi32(_mm512_srli_epi64(product, 32));
        const __m512i twice = _mm512_broadcast_i64x4(value);
        uint32_t repeated = 0;
        for (uint32_t p = 0; p < s / 2; ++p) repeated |= _mm512_cmpeq_epi32_mask(pairs[p], twice);
        repeated |= repeated >> kFloydRows;
        const __m512i before = _mm512_zextsi256_si512(last);
        if (s % 2 == 1) repeated |= _mm512_cmpeq_epi32_mask(before, twice);
        const __m256i drawn = _mm512_castsi512_si256(
            _mm512_mask_blend_epi32(static_cast<__mmask16>(repeated & 0xFF),
                                    _mm512_zextsi256_si512(value), _mm512_zextsi256_si512(j)));
        _mm256_storeu_si256(to + s, drawn);
        if (s % 2 == 1) pairs[s / 2] = _mm512_inserti64x4(before, drawn, 1);
        last = drawn;
        j = bound;
      }
    }
  }
}
#endif

}  // namespace

bool can_draw(FloydBy by, uint32_t fanout) {
#ifdef GNNBENCH_X86
  static const bool avx2 = __builtin_cpu_supports("avx2");
  static const bool avx512 = __builtin_cpu_supports("avx512f");
  if (by == FloydBy::kAvx512) return avx512 && fanout <= kWideFloyd;
  if (by == FloydBy::kAvx2) return avx2;
#endif
  return by == FloydBy::kScalar;
}

FloydBy widest_floyd(uint32_t fanout) {
  if (can_draw(FloydBy::kAvx512, fanout)) return FloydBy::kAvx512;
  return can_draw(FloydBy::kAvx2, fanout) ? FloydBy::kAvx2 : FloydBy::kScalar;
}

void floyd_rows(const HopDraws& draws, int64_t n, const uint32_t* low, const uint32_t* high,
                const uint32_t* degree, uint32_t* out, FloydBy by) {
#ifdef GNNBENCH_X86
  if (by == FloydBy::kAvx512) return floyd_rows_avx512(draws, n, low, high, degree, out);
  if (by == FloydBy::kAvx2) return floyd_rows_avx2(draws, n, low, high, degree, out);
#endif
  for (int64_t row = 0; row < n; row += kFloydRows) {
    floyd_group_scalar(draws, low + row, high + row, degree + row, out + row * draws.fanout);
  }
}

}  // namespace gnnbench
