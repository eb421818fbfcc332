#include "cuda/common/device_assert.h"
#include "cuda/features/gather.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

// A power of two of lanes shares a row; consecutive lanes read consecutive units.
template <class Id, class Unit>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const Unit* __restrict__ table, int64_t num_rows, const Id* __restrict__ ids,
                  int64_t n, int64_t units, int lanes_log2, Unit* __restrict__ out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t i = thread >> lanes_log2;
  if (i >= n) return;
  const int64_t row = static_cast<int64_t>(ids[i]);
  assert(row >= 0 && row < num_rows && "gnnbench gather: an id is outside the table");
  const int lanes = 1 << lanes_log2;
  for (int64_t u = thread & (lanes - 1); u < units; u += lanes) {
    out[i * units + u] = table[row * units + u];
  }
}

template <class Id, class Unit>
void run(Launch launch, const void* table, int64_t num_rows, const Id* ids, int64_t n,
         int64_t row_bytes, void* out) {
  const int64_t units = row_bytes / static_cast<int64_t>(sizeof(Unit));
  int lanes_log2 = 0;
  while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < units) ++lanes_log2;
  gather_kernel<Id, Unit><<<blocks_for(n << lanes_log2, kThreads), kThreads, 0, launch.stream>>>(
      static_cast<const Unit*>(table), num_rows, ids, n, units, lanes_log2,
      static_cast<Unit*>(out));
  GNNBENCH_CUDA_LAUNCHED(launch, "gather_kernel");
}

}  // namespace

template <class Id>
void gather_rows(Launch launch, const void* table, int64_t num_rows, const Id* ids, int64_t n,
                 int64_t row_bytes, void* out) {
  if (n == 0 || row_bytes == 0) return;
  // The widest unit that divides both addresses and the row.
  const uintptr_t bits = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out) |
                         static_cast<uintptr_t>(row_bytes);
  if (bits % 16 == 0) return run<Id, uint4>(launch, table, num_rows, ids, n, row_bytes, out);
  if (bits % 8 == 0) return run<Id, uint2>(launch, table, num_rows, ids, n, row_bytes, out);
  if (bits % 4 == 0) return run<Id, uint32_t>(launch, table, num_rows, ids, n, row_bytes, out);
  if (bits % 2 == 0) return run<Id, uint16_t>(launch, table, num_rows, ids, n, row_bytes, out);
  run<Id, uint8_t>(launch, table, num_rows, ids, n, row_bytes, out);
}

template void gather_rows<int32_t>(Launch, const void*, int64_t, const int32_t*, int64_t, int64_t,
                                   void*);
template void gather_rows<int64_t>(Launch, const void*, int64_t, const int64_t*, int64_t, int64_t,
                                   void*);

}  // namespace gnnbench::cuda
