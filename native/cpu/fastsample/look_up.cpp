#include "cpu/fastsample/look_up.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "cpu/common/multiversion.h"
#include "cpu/common/prefetch.h"

namespace gnnbench {
namespace {

// Has no branch on whether a key is known.
template <bool kOwn, class Id>
int64_t look_up_one_by_one(const int32_t* map, const Id* keys, int64_t begin, int64_t n,
                           int32_t* out, int32_t* unknown) {
  int64_t count = 0;
  for (int64_t e = begin; e < n; ++e) {
    prefetch_entry(map + keys[std::min(e + kLookUpAhead, n - 1)], kOwn);
    out[e] = std::atomic_ref(const_cast<int32_t&>(map[keys[e]])).load(std::memory_order_relaxed);
    unknown[count] = static_cast<int32_t>(e);
    count += out[e] == kUnclaimed;
  }
  return count;
}

#ifdef GNNBENCH_X86
// A gather reads each aligned word as a whole, like an atomic load.
template <bool kOwn>
GNNBENCH_AVX512 int64_t look_up_avx512(const int32_t* map, const int32_t* keys, int64_t n,
                                       int32_t* out, int32_t* unknown) {
  const __m512i none = _mm512_set1_epi32(kUnclaimed), step = _mm512_set1_epi32(kLookUpWide);
  __m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int64_t count = 0, e = 0;
  for (; e + kLookUpWide <= n; e += kLookUpWide) {
    if (e + kLookUpAhead + kLookUpWide <= n) {
      for (int64_t i = 0; i < kLookUpWide; ++i) {
        prefetch_entry(map + keys[e + kLookUpAhead + i], kOwn);
      }
    }
    const __m512i found =
        _mm512_mask_i32gather_epi32(none, 0xFFFF, _mm512_loadu_si512(keys + e), map, 4);
    _mm512_storeu_si512(out + e, found);
    const __mmask16 missing = _mm512_cmpeq_epi32_mask(found, none);
    _mm512_storeu_si512(unknown + count, _mm512_maskz_compress_epi32(missing, at));
    count += __builtin_popcount(missing);
    at = _mm512_add_epi32(at, step);
  }
  return count + look_up_one_by_one<kOwn>(map, keys, e, n, out, unknown + count);
}
#endif

template <bool kOwn, class Id>
int64_t look_up_widest(const int32_t* map, const Id* keys, int64_t n, int32_t* out,
                       int32_t* unknown) {
#ifdef GNNBENCH_X86
  if constexpr (std::is_same_v<Id, int32_t>) {
    static const bool avx512 = __builtin_cpu_supports("avx512f");
    if (avx512) return look_up_avx512<kOwn>(map, keys, n, out, unknown);
  }
#endif
  return look_up_one_by_one<kOwn>(map, keys, 0, n, out, unknown);
}

}  // namespace

template <class Id>
int64_t look_up(const int32_t* map, const Id* keys, int64_t n, int32_t* out, int32_t* unknown,
                bool to_own) {
  return to_own ? look_up_widest<true>(map, keys, n, out, unknown)
                : look_up_widest<false>(map, keys, n, out, unknown);
}

template int64_t look_up(const int32_t*, const int32_t*, int64_t, int32_t*, int32_t*, bool);
template int64_t look_up(const int32_t*, const int64_t*, int64_t, int32_t*, int32_t*, bool);

}  // namespace gnnbench
