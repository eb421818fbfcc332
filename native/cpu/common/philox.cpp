#include "cpu/common/philox.h"

#include <atomic>

#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"
#include "gnnbench/rng.h"

namespace gnnbench {

namespace {

void blocks_scalar(uint64_t key, uint32_t c3, const uint32_t* c0, const uint32_t* c1,
                   const uint32_t* c2, int64_t n, uint32_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    const Philox4 r = philox4x32(key, Philox4{c0[i], c1[i], c2[i], c3});
    out[4 * i] = r.x;
    out[4 * i + 1] = r.y;
    out[4 * i + 2] = r.z;
    out[4 * i + 3] = r.w;
  }
}

#ifdef GNNBENCH_X86
// A 64-bit lane holds one word of one block. vpmuludq reads the low half only, so the high halves
// may hold garbage: no masks and no separate low and high products are needed.
struct Lanes {
  __m256i x, y, z, w;
};

GNNBENCH_AVX2 inline __m256i widen(const uint32_t* p) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

GNNBENCH_AVX2 inline void store(const Lanes& s, uint32_t* out) {
  const __m256i xy = _mm256_blend_epi32(s.x, _mm256_slli_epi64(s.y, 32), 0xAA);
  const __m256i zw = _mm256_blend_epi32(s.z, _mm256_slli_epi64(s.w, 32), 0xAA);
  const __m256i even = _mm256_unpacklo_epi64(xy, zw), odd = _mm256_unpackhi_epi64(xy, zw);
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

GNNBENCH_AVX2 void blocks_avx2(uint64_t key, uint32_t c3, const uint32_t* c0, const uint32_t* c1,
                               const uint32_t* c2, int64_t n, uint32_t* out) {
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  constexpr int kVectors = kPhiloxLanes / 4;
  for (int64_t base = 0; base < n; base += kPhiloxLanes) {
    Lanes s[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = base + 4 * v;
      s[v] = Lanes{widen(c0 + at), widen(c1 + at), widen(c2 + at), _mm256_set1_epi64x(c3)};
    }
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
      for (int v = 0; v < kVectors; ++v) {
        const __m256i p0 = _mm256_mul_epu32(m0, s[v].x), p1 = _mm256_mul_epu32(m1, s[v].z);
        s[v].x = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), s[v].y), key0);
        s[v].z = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), s[v].w), key1);
        s[v].y = p1;
        s[v].w = p0;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int v = 0; v < kVectors; ++v) store(s[v], out + 4 * (base + 4 * v));
  }
}
#endif

}  // namespace

void philox_blocks(uint64_t key, uint32_t c3, const uint32_t* c0, const uint32_t* c1,
                   const uint32_t* c2, int64_t n, uint32_t* out) {
#ifdef GNNBENCH_X86
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return blocks_avx2(key, c3, c0, c1, c2, n, out);
#endif
  blocks_scalar(key, c3, c0, c1, c2, n, out);
}

bool philox(uint64_t key, const int64_t* counters, int64_t n, int64_t* out) {
  std::atomic<bool> fits{true};
  parallel_chunks(n, 4096, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t* c = counters + 4 * i;
      if (((c[0] | c[1] | c[2] | c[3]) >> 32) != 0) {
        fits.store(false, std::memory_order_relaxed);
        continue;
      }
      const Philox4 r =
          philox4x32(key, Philox4{static_cast<uint32_t>(c[0]), static_cast<uint32_t>(c[1]),
                                  static_cast<uint32_t>(c[2]), static_cast<uint32_t>(c[3])});
      out[4 * i] = r.x;
      out[4 * i + 1] = r.y;
      out[4 * i + 2] = r.z;
      out[4 * i + 3] = r.w;
    }
  });
  return fits.load();
}

}  // namespace gnnbench
