// Packs: vectors of elements for one load or store.
#pragma once

#include "cuda/aggregate/sum_of.h"

namespace gnnbench::cuda {

__device__ __forceinline__ float to_sum(float v) { return v; }
__device__ __forceinline__ double to_sum(double v) { return v; }
__device__ __forceinline__ float to_sum(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_sum(__nv_bfloat16 v) { return __bfloat162float(v); }

template <class T>
__device__ __forceinline__ T from_sum(Sum<T> v) {
  return v;
}
template <>
__device__ __forceinline__ __half from_sum<__half>(float v) {
  return __float2half(v);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_sum<__nv_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// kBytes of a row in one load or store: 16, 8, 4 or 2.
template <int kBytes>
struct WordOf;
template <>
struct WordOf<16> {
  using type = uint4;
};
template <>
struct WordOf<8> {
  using type = uint2;
};
template <>
struct WordOf<4> {
  using type = unsigned int;
};
template <>
struct WordOf<2> {
  using type = unsigned short;
};

template <class T, int kWidth>
union Elements {
  using Word = typename WordOf<kWidth * sizeof(T)>::type;
  Word word;
  T value[kWidth];
  __device__ Elements() : word{} {}
};

// Element i of row `row`'s pack is x[row * packs + pack].value[i]. The load is cached in L1 because
// hubs are read again.
template <class T, int kWidth>
__device__ __forceinline__ Elements<T, kWidth> load_pack(const T* x, int64_t at) {
  Elements<T, kWidth> found;
  found.word = __ldg(reinterpret_cast<const typename Elements<T, kWidth>::Word*>(x) + at);
  return found;
}

// Streaming store (evict first), because the kernel does not read the output again. Except narrow
// packs: their rows begin and end within a sector that another store completes.
template <class T, int kWidth>
__device__ __forceinline__ void store_pack(T* out, int64_t at, const Sum<T> (&sum)[kWidth]) {
  Elements<T, kWidth> rounded;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) rounded.value[i] = from_sum<T>(sum[i]);
  auto* const to = reinterpret_cast<typename Elements<T, kWidth>::Word*>(out) + at;
  if constexpr (kWidth * sizeof(T) == 16) {
    __stcs(to, rounded.word);
  } else {
    *to = rounded.word;
  }
}

// The widest pack, in bytes, that divides rows of `dim` elements at `a` and `b`.
template <class T>
int pack_bytes(const void* a, const void* b, int64_t dim) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
                         static_cast<uintptr_t>(dim * static_cast<int64_t>(sizeof(T)));
  for (const int bytes : {16, 8, 4}) {
    if (bits % static_cast<uintptr_t>(bytes) == 0 && bytes >= static_cast<int>(sizeof(T))) {
      return bytes;
    }
  }
  return sizeof(T);
}

}  // namespace gnnbench::cuda
