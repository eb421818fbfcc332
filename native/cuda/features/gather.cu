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

template <class Id, class Unit>
__global__ void __launch_bounds__(kThreads)
    gather_to_kernel(const Unit* __restrict__ table, int64_t num_rows, const Id* __restrict__ ids,
                     int64_t n, RowShape<Unit> shape, const int32_t* __restrict__ places,
                     int64_t out_rows, Unit* __restrict__ out) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; (thread >> shape.lanes_log2) < n; thread += step) {
    const int64_t i = thread >> shape.lanes_log2;
    const int64_t row = static_cast<int64_t>(ids[i]), place = places[i];
    assert(row >= 0 && row < num_rows && "gnnbench gather_to: an id is outside the table");
    assert(place >= 0 && place < out_rows && "gnnbench gather_to: a place is outside of out");
    shape.copy(table, row, out, place, static_cast<int>(threadIdx.x));
  }
}

}  // namespace

template <class Id>
void gather_rows_to(Launch launch, const void* table, int64_t num_rows, const Id* ids, int64_t n,
                    int64_t row_bytes, const int32_t* places, int64_t out_rows, void* out,
                    int64_t blocks, bool aligned) {
  if (n == 0 || row_bytes == 0) return;
  with_unit(table, out, row_bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const RowShape<Unit> shape(row_bytes, aligned);
    const int64_t all = blocks_for(n << shape.lanes_log2, kThreads);
    const int64_t grid = blocks > 0 && blocks < all ? blocks : all;
    gather_to_kernel<Id, Unit>
        <<<grid, kThreads, 0, launch.stream>>>(static_cast<const Unit*>(table), num_rows, ids, n,
                                               shape, places, out_rows, static_cast<Unit*>(out));
    GNNBENCH_CUDA_LAUNCHED(launch, "gather_to_kernel");
  });
}

template void gather_rows_to<int32_t>(Launch, const void*, int64_t, const int32_t*, int64_t,
                                      int64_t, const int32_t*, int64_t, void*, int64_t, bool);
template void gather_rows_to<int64_t>(Launch, const void*, int64_t, const int64_t*, int64_t,
                                      int64_t, const int32_t*, int64_t, void*, int64_t, bool);

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
