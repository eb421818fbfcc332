// Function multiversioning: libraries are moved between machines, so wider instructions are chosen
// at run time, never by -march. GNNBENCH_PORTABLE keeps only the plain code.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(GNNBENCH_PORTABLE)
#define GNNBENCH_X86 1
#include <immintrin.h>
#define GNNBENCH_AVX2 __attribute__((target("avx2")))
#define GNNBENCH_AVX512 __attribute__((target("avx512f")))
#endif

// A sanitizer is not initialised yet when the loader chooses among clones.
#if defined(GNNBENCH_X86) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__)
#define GNNBENCH_CLONED 1
#endif

#ifdef GNNBENCH_CLONED
#define GNNBENCH_CLONES __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define GNNBENCH_CLONES
#endif

// Two functions that the caller chooses from by has_avx512(). AVX-512 has twice as many registers
// of twice the width, so the two can keep different numbers of values in registers.
#ifdef GNNBENCH_X86
#define GNNBENCH_WIDE GNNBENCH_AVX512
#else
#define GNNBENCH_WIDE
#endif
#ifdef GNNBENCH_CLONED
#define GNNBENCH_NOT_WIDE __attribute__((target_clones("arch=haswell", "default")))
#else
#define GNNBENCH_NOT_WIDE
#endif

namespace gnnbench {

inline bool has_avx512() {
#ifdef GNNBENCH_X86
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

}  // namespace gnnbench
