#include "cuda/ceilings/wave.cuh"
#include "cuda/common/device_assert.h"

namespace gnnbench::cuda {
namespace {

constexpr int kDepth = 4;  // loads in flight per thread

// Volatile, so that a second pass does not reuse registers. `cg` caches in L2 only.
__device__ __forceinline__ uint4 load(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ __forceinline__ uint32_t load(const uint32_t* from) {
  uint32_t v;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}

__device__ __forceinline__ uint32_t total(uint4 v) { return v.x + v.y + v.z + v.w; }
__device__ __forceinline__ uint32_t total(uint32_t v) { return v; }

__global__ void __launch_bounds__(kCeilingThreads)
    ceiling_copy_kernel(const uint4* __restrict__ from, int64_t units, uint4* __restrict__ to) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kCeilingThreads;
  int64_t u = static_cast<int64_t>(blockIdx.x) * kCeilingThreads + threadIdx.x;
  for (; u + (kDepth - 1) * stride < units; u += kDepth * stride) {
    uint4 v[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d) v[d] = __ldcs(from + u + d * stride);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) __stcs(to + u + d * stride, v[d]);
  }
  for (; u < units; u += stride) __stcs(to + u, __ldcs(from + u));
}

__global__ void __launch_bounds__(kCeilingThreads)
    ceiling_read_kernel(const uint4* __restrict__ words, int64_t units, int64_t passes,
                        unsigned long long* sum) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kCeilingThreads;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kCeilingThreads + threadIdx.x;
  uint32_t own = 0;
  for (int64_t p = 0; p < passes; ++p) {
    int64_t u = first;
    for (; u + (kDepth - 1) * stride < units; u += kDepth * stride) {
      uint4 v[kDepth];
#pragma unroll
      for (int d = 0; d < kDepth; ++d) v[d] = load(words + u + d * stride);
#pragma unroll
      for (int d = 0; d < kDepth; ++d) own += total(v[d]);
    }
    for (; u < units; u += stride) own += total(load(words + u));
  }
  add_words(own, sum);
}

// A group of 2^lanes_log2 lanes reads a row, kDepth rows at a time.
template <class Unit>
__global__ void __launch_bounds__(kCeilingThreads)
    ceiling_rows_kernel(const Unit* __restrict__ table, int64_t rows, int64_t units,
                        const int64_t* __restrict__ ids, int64_t n, int lanes_log2,
                        unsigned long long* sum) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kCeilingThreads + threadIdx.x;
  const int64_t groups = (static_cast<int64_t>(gridDim.x) * kCeilingThreads) >> lanes_log2;
  const int lanes = 1 << lanes_log2;
  const int64_t lane = thread & (lanes - 1);
  uint32_t own = 0;
  bool valid = true;
  for (int64_t i = thread >> lanes_log2; i < n; i += kDepth * groups) {
    const Unit* row[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int64_t at = i + d * groups;
      const int64_t id = at < n ? ids[at] : 0;
      const bool inside = id >= 0 && id < rows;
      valid = valid && inside;
      row[d] = at < n && inside ? table + id * units : nullptr;
    }
    for (int64_t u = lane; u < units; u += lanes) {
      Unit v[kDepth];
#pragma unroll
      for (int d = 0; d < kDepth; ++d) v[d] = row[d] == nullptr ? Unit{} : load(row[d] + u);
#pragma unroll
      for (int d = 0; d < kDepth; ++d) own += total(v[d]);
    }
  }
  assert(valid && "gnnbench ceiling_rows: an id is outside the table");
  add_words(own, sum);
}

template <class Unit>
void run_rows(Launch launch, const uint32_t* words, int64_t rows, int64_t width, const int64_t* ids,
              int64_t n, unsigned long long* sum) {
  const int64_t units = width * 4 / static_cast<int64_t>(sizeof(Unit));
  int lanes_log2 = 0;
  while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < units) ++lanes_log2;
  ceiling_rows_kernel<Unit><<<ceiling_grid(launch), kCeilingThreads, 0, launch.stream>>>(
      reinterpret_cast<const Unit*>(words), rows, units, ids, n, lanes_log2, sum);
  GNNBENCH_CUDA_LAUNCHED(launch, "ceiling_rows_kernel");
}

}  // namespace

void ceiling_copy(Launch launch, const void* from, int64_t lines, void* to) {
  if (lines == 0) return;
  ceiling_copy_kernel<<<ceiling_grid(launch), kCeilingThreads, 0, launch.stream>>>(
      static_cast<const uint4*>(from), lines * 4, static_cast<uint4*>(to));
  GNNBENCH_CUDA_LAUNCHED(launch, "ceiling_copy_kernel");
}

void ceiling_read(Launch launch, const uint32_t* words, int64_t lines, int64_t passes,
                  unsigned long long* sum) {
  ceiling_read_kernel<<<ceiling_grid(launch), kCeilingThreads, 0, launch.stream>>>(
      reinterpret_cast<const uint4*>(words), lines * 4, passes, sum);
  GNNBENCH_CUDA_LAUNCHED(launch, "ceiling_read_kernel");
}

void ceiling_rows(Launch launch, const uint32_t* words, int64_t rows, int64_t width,
                  const int64_t* ids, int64_t n, unsigned long long* sum) {
  if (n == 0 || width == 0) return;
  const bool wide = width % 4 == 0 && reinterpret_cast<uintptr_t>(words) % 16 == 0;
  if (wide) {
    run_rows<uint4>(launch, words, rows, width, ids, n, sum);
  } else {
    run_rows<uint32_t>(launch, words, rows, width, ids, n, sum);
  }
}

}  // namespace gnnbench::cuda
