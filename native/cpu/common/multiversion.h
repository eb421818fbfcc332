// Function multiversioning: the libraries travel between machines, so wider instructions are
// chosen at run time, never by -march. GNNBENCH_PORTABLE leaves the plain code alone.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(GNNBENCH_PORTABLE)
#define GNNBENCH_X86 1
#include <immintrin.h>
#define GNNBENCH_AVX2 __attribute__((target("avx2")))
#define GNNBENCH_AVX512 __attribute__((target("avx512f")))
#endif

#if defined(GNNBENCH_X86) && !defined(__clang__) && defined(__GLIBC__)
#define GNNBENCH_CLONES __attribute__((target_clones("avx512f", "arch=haswell", "default")))
// Where AVX-512 has a function of its own.
#define GNNBENCH_CLONES_256 __attribute__((target_clones("arch=haswell", "default")))
#else
#define GNNBENCH_CLONES
#define GNNBENCH_CLONES_256
#endif
