#include "cuda/features/page_order.h"

#include <cub/device/device_radix_sort.cuh>

#include "cuda/common/device_assert.h"
#include "cuda/features/rows.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kReaders = 1024;

template <class Id>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const Id* __restrict__ ids, const int64_t* __restrict__ places, int64_t n,
                int64_t num_rows, uint64_t* __restrict__ keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t id = static_cast<int64_t>(ids[i]);
  assert(id >= 0 && id < num_rows && "gnnbench gather: an id is outside the table");
  const int64_t place = places == nullptr ? i : places[i];
  keys[i] = static_cast<uint64_t>(id) << 32 | static_cast<uint32_t>(place);
}

// Groups of lanes take consecutive keys, so that what is read at a time lies in few pages.
template <class Unit>
__global__ void __launch_bounds__(kReaders)
    read_kernel(const Unit* __restrict__ table, const uint64_t* __restrict__ keys, int64_t n,
                RowShape<Unit> shape, Unit* __restrict__ out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kReaders + threadIdx.x;
  const int64_t groups = (static_cast<int64_t>(gridDim.x) * kReaders) >> shape.lanes_log2;
  for (int64_t i = thread >> shape.lanes_log2; i < n; i += groups) {
    const uint64_t key = keys[i];
    if (key == kNowhere) return;  // sorted last
    shape.copy(table, static_cast<int64_t>(key >> 32), out, static_cast<int64_t>(key & 0xFFFFFFFFu),
               static_cast<int>(thread));
  }
}

int log2_floor(int64_t n) {
  int bits = 0;
  while (bits < 62 && (int64_t{2} << bits) <= n) ++bits;
  return bits;
}

cudaError_t sort(const PageOrder& order, size_t& bytes, int64_t n, int first, int last,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortKeys(order.scratch, bytes, order.keys, order.sorted, n, first,
                                        last, stream);
}

}  // namespace

size_t page_order_scratch_bytes(Launch launch, int64_t n) {
  size_t bytes = 0;
  GNNBENCH_CUDA_CALL(launch, sort(PageOrder{}, bytes, n, 0, 64, launch.stream));
  return bytes;
}

template <class Id>
void page_keys(Launch launch, const Id* ids, const int64_t* places, int64_t n, int64_t num_rows,
               uint64_t* keys) {
  if (n == 0) return;
  keys_kernel<<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(ids, places, n, num_rows,
                                                                       keys);
  GNNBENCH_CUDA_LAUNCHED(launch, "keys_kernel");
}

void gather_keys(Launch launch, const Pages& pages, const PageOrder& order, int64_t n, void* out) {
  if (n == 0 || pages.row_bytes == 0) return;
  // One bit above the ids', which only kNowhere has set.
  const int last = 32 + log2_floor(pages.num_rows) + 2;
  const int first = 32 + log2_floor(pages.page_bytes / pages.row_bytes);
  const uint64_t* keys = order.keys;
  if (first < last) {
    size_t bytes = order.scratch_bytes;
    GNNBENCH_CUDA_CALL(launch,
                       sort(order, bytes, n, first, last < 64 ? last : 64, launch.stream));
    keys = order.sorted;
  }
  with_unit(pages.table, out, pages.row_bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const RowShape<Unit> shape(pages.row_bytes);
    const int64_t most = blocks_for(n << shape.lanes_log2, kReaders);
    read_kernel<Unit><<<most < pages.blocks ? most : pages.blocks, kReaders, 0, launch.stream>>>(
        static_cast<const Unit*>(pages.table), keys, n, shape, static_cast<Unit*>(out));
    GNNBENCH_CUDA_LAUNCHED(launch, "read_kernel");
  });
}

template void page_keys<int32_t>(Launch, const int32_t*, const int64_t*, int64_t, int64_t,
                                 uint64_t*);
template void page_keys<int64_t>(Launch, const int64_t*, const int64_t*, int64_t, int64_t,
                                 uint64_t*);

}  // namespace gnnbench::cuda
