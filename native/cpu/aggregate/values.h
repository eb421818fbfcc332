// Storage types and accumulation types of values: float16 and bfloat16 accumulate in float.
#pragma once

#include <cstdint>
#include <cstring>

namespace gnnbench {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <class T>
struct SumOf {
  typedef float type;
};
template <>
struct SumOf<double> {
  typedef double type;
};
// The type in which values of type T are summed.
template <class T>
using Sum = typename SumOf<T>::type;

#define GNNBENCH_INLINE inline __attribute__((always_inline))

// Compilers reject a vector size that depends on a template argument.
template <int kBytes, class S = float>
struct PackOf;
#define GNNBENCH_PACKS(BYTES)                                                               \
  template <>                                                                               \
  struct PackOf<BYTES> {                                                                    \
    typedef float type __attribute__((vector_size(BYTES), aligned(4), may_alias));          \
    typedef uint16_t Bits16 __attribute__((vector_size(BYTES / 2), aligned(2), may_alias)); \
    typedef uint32_t Bits32 __attribute__((vector_size(BYTES), aligned(4), may_alias));     \
  };                                                                                        \
  template <>                                                                               \
  struct PackOf<BYTES, double> {                                                            \
    typedef double type __attribute__((vector_size(BYTES), aligned(8), may_alias));         \
  };
GNNBENCH_PACKS(32)
GNNBENCH_PACKS(64)
#undef GNNBENCH_PACKS

// Vectors of sums of 32 or 64 bytes: one register of the kernel's instruction set, because
// compilers spill wider ones to memory.
template <int kBytes>
struct Lanes {
  using Floats = typename PackOf<kBytes>::type;
  using Doubles = typename PackOf<kBytes, double>::type;
  using Bits16 = typename PackOf<kBytes>::Bits16;
  using Bits32 = typename PackOf<kBytes>::Bits32;

  template <class S>
  using Pack = typename PackOf<kBytes, S>::type;
  template <class S>
  static constexpr int64_t kPack = kBytes / static_cast<int64_t>(sizeof(S));

  static GNNBENCH_INLINE void widen(const float* from, Floats& to) {
    to = *reinterpret_cast<const Floats*>(from);
  }

  static GNNBENCH_INLINE void widen(const double* from, Doubles& to) {
    to = *reinterpret_cast<const Doubles*>(from);
  }

  static GNNBENCH_INLINE void widen(const BFloat16* from, Floats& to) {
    const Bits16 narrow = *reinterpret_cast<const Bits16*>(from);
    const Bits32 bits = __builtin_convertvector(narrow, Bits32) << 16;
    to = reinterpret_cast<const Floats&>(bits);
  }

  // Moves exponent and mantissa into float's fields and multiplies by the difference of the biases.
  // This is also right for subnormals. Infinities and NaN then get float's largest exponent.
  static GNNBENCH_INLINE void widen(const Half* from, Floats& to) {
    const Bits16 narrow = *reinterpret_cast<const Bits16*>(from);
    const Bits32 bits = __builtin_convertvector(narrow, Bits32);
    const Bits32 size = bits & 0x7fff;
    const Bits32 shifted = size << 13;
    const Floats scaled = reinterpret_cast<const Floats&>(shifted) * 0x1p112f;
    const Bits32 special = reinterpret_cast<const Bits32&>(scaled) |
                           (reinterpret_cast<Bits32>(size >= 0x7c00) & 0x7f800000u);
    const Bits32 all = special | (bits & 0x8000) << 16;
    to = reinterpret_cast<const Floats&>(all);
  }

  static GNNBENCH_INLINE void narrow(const Floats& from, float* to) {
    *reinterpret_cast<Floats*>(to) = from;
  }

  static GNNBENCH_INLINE void narrow(const Doubles& from, double* to) {
    *reinterpret_cast<Doubles*>(to) = from;
  }

  // Rounds to nearest, ties to even.
  static GNNBENCH_INLINE void narrow(const Floats& from, BFloat16* to) {
    const Bits32 bits = reinterpret_cast<const Bits32&>(from);
    const Bits32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const Bits32 all =
        (bits & 0x7fffffff) > 0x7f800000u ? bits >> 16 | 0x40 : rounded;  // NaN stays NaN
    *reinterpret_cast<Bits16*>(to) = __builtin_convertvector(all, Bits16);
  }

  // Rounds likewise. Below Half's normal numbers the last place of the sum is the smallest
  // subnormal, 2^-24.
  static GNNBENCH_INLINE void narrow(const Floats& from, Half* to) {
    const Bits32 bits = reinterpret_cast<const Bits32&>(from);
    const Bits32 size = bits & 0x7fffffff;
    const Bits32 normal = (size - 0x38000000u + 0xfff + (size >> 13 & 1)) >> 13;
    const Floats shifted = reinterpret_cast<const Floats&>(size) + 0.5f;
    const Bits32 subnormal = reinterpret_cast<const Bits32&>(shifted) - 0x3f000000u;
    const Bits32 finite = size >= 0x38800000u ? normal : subnormal;
    const Bits32 infinite = Bits32{} + 0x7c00, nan = Bits32{} + 0x7e00;
    const Bits32 large = size > 0x7f800000u ? nan : infinite;
    const Bits32 all = (size >= 0x477ff000u ? large : finite) | (bits >> 16 & 0x8000);
    *reinterpret_cast<Bits16*>(to) = __builtin_convertvector(all, Bits16);
  }
};

GNNBENCH_INLINE float widened(float x) { return x; }
GNNBENCH_INLINE double widened(double x) { return x; }

inline float widened(BFloat16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

inline float widened(Half x) {
  const uint32_t size = x.bits & 0x7fffu;
  uint32_t bits = size << 13;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  f *= 0x1p112f;
  std::memcpy(&bits, &f, sizeof f);
  if (size >= 0x7c00) bits |= 0x7f800000u;
  bits |= static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

GNNBENCH_INLINE void narrow(float x, float& to) { to = x; }
GNNBENCH_INLINE void narrow(double x, double& to) { to = x; }

// Rounds to nearest, ties to even.
inline void narrow(float x, BFloat16& to) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {  // NaN stays NaN
    to.bits = static_cast<uint16_t>(bits >> 16 | 0x40u);
  } else {
    to.bits = static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
  }
}

inline void narrow(float x, Half& to) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof x);
  const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  uint32_t half;
  if (size > 0x7f800000u) {
    half = 0x7e00u;
  } else if (size >= 0x477ff000u) {  // rounds to 65536 or above
    half = 0x7c00u;
  } else if (size >= 0x38800000u) {  // normal
    half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
  } else {  // the last place of the sum is the smallest subnormal, 2^-24
    float f;
    std::memcpy(&f, &size, sizeof f);
    f += 0.5f;
    uint32_t rounded;
    std::memcpy(&rounded, &f, sizeof f);
    half = rounded - 0x3f000000u;
  }
  to.bits = static_cast<uint16_t>(sign | half);
}

}  // namespace gnnbench
