#include "cuda/common/device_assert.h"
#include "cuda/features/gather.h"
#include "cuda/features/rows.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

template <class Id, class Unit>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const Unit* __restrict__ table, int64_t num_rows, const Id* __restrict__ ids,
                  int64_t n, RowShape<Unit> shape, Unit* __restrict__ out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t i = thread >> shape.lanes_log2;
  if (i >= n) return;
  const int64_t row = static_cast<int64_t>(ids[i]);
  assert(row >= 0 && row < num_rows && "gnnbench gather: an id is outside the table");
  shape.copy(table, row, out, i, static_cast<int>(thread));
}

}  // namespace

template <class Id>
void gather_rows(Launch launch, const void* table, int64_t num_rows, const Id* ids, int64_t n,
                 int64_t row_bytes, void* out, bool aligned) {
  if (n == 0 || row_bytes == 0) return;
  with_unit(table, out, row_bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const RowShape<Unit> shape(row_bytes, aligned);
    gather_kernel<Id, Unit>
        <<<blocks_for(n << shape.lanes_log2, kThreads), kThreads, 0, launch.stream>>>(
            static_cast<const Unit*>(table), num_rows, ids, n, shape, static_cast<Unit*>(out));
    GNNBENCH_CUDA_LAUNCHED(launch, "gather_kernel");
  });
}

template void gather_rows<int32_t>(Launch, const void*, int64_t, const int32_t*, int64_t, int64_t,
                                   void*, bool);
template void gather_rows<int64_t>(Launch, const void*, int64_t, const int64_t*, int64_t, int64_t,
                                   void*, bool);

}  // namespace gnnbench::cuda
