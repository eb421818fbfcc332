#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "cuda/common/device_assert.h"
#include "cuda/features/page_order.h"
#include "cuda/features/rows.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kReaders = 1024;
constexpr size_t kTickets = sizeof(unsigned long long);
constexpr uint32_t kNone = static_cast<uint32_t>(kNowhere >> 32);

template <class Id>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const Id* __restrict__ ids, int64_t first, int64_t n, int64_t num_rows,
                uint64_t* __restrict__ keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t id = static_cast<int64_t>(ids[i]);
  assert(id >= 0 && id < num_rows && "gnnbench gather: an id is outside the table");
  keys[i] = static_cast<uint64_t>(id) << 32 | static_cast<uint32_t>(first + i);
}

// Warps take tickets for the rows to read in key order, each for kDepth times as many rows as its
// lanes can read at once. With a static assignment fast warps would run ahead of slow ones, and
// concurrent reads would span many more pages. The next ticket is requested before the rows, to
// hide its latency. read(i, step): a group's rows are i + d * step for d < kDepth.
template <int kDepth, class Unit, class Read>
__device__ void sweep(int64_t n, const RowShape<Unit>& shape, unsigned long long* next,
                      const Read& read) {
  const int lane = threadIdx.x % 32, step = 32 >> shape.lanes_log2;
  const auto ticket = [&] { return lane == 0 ? atomicAdd(next, 1ull) : 0ull; };
  const auto first = [&](unsigned long long drawn) {
    return static_cast<int64_t>(__shfl_sync(~0u, drawn, 0)) * (kDepth * step);
  };
  for (int64_t i = first(ticket()); i < n;) {
    const unsigned long long drawn = ticket();
    if (!read(i + (lane >> shape.lanes_log2), step)) return;
    i = first(drawn);
  }
}

template <class Unit, int kDepth>
__global__ void __launch_bounds__(kReaders)
    read_kernel(const Unit* __restrict__ table, const uint64_t* __restrict__ keys, int64_t n,
                RowShape<Unit> shape, unsigned long long* next, Unit* __restrict__ out) {
  sweep<kDepth>(n, shape, next, [&](int64_t i, int step) {
    uint32_t rows[kDepth], places[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const uint64_t key = i + d * step < n ? keys[i + d * step] : kNowhere;
      rows[d] = static_cast<uint32_t>(key >> 32);  // kNone for kNowhere
      places[d] = static_cast<uint32_t>(key);
    }
    if (__shfl_sync(~0u, rows[0], 0) == kNone) return false;  // sorted last
    shape.read(table, rows, static_cast<int>(threadIdx.x), [&](int d, int32_t at, Unit unit) {
      out[static_cast<int64_t>(places[d]) * shape.units + at] = unit;
    });
    return true;
  });
}

// The same over keys in id order. The group of an id's first key reads the row and writes it to the
// places of all following keys with that id; the groups of those keys skip them.
template <class Unit, int kDepth>
__global__ void __launch_bounds__(kReaders)
    once_kernel(const Unit* __restrict__ table, const uint64_t* __restrict__ keys, int64_t n,
                RowShape<Unit> shape, unsigned long long* next, int64_t* __restrict__ distinct,
                Unit* __restrict__ out) {
  __shared__ int found;  // per thread block
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  int count = 0;
  sweep<kDepth>(n, shape, next, [&](int64_t i, int step) {
    uint32_t rows[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int64_t k = i + d * step;
      const uint32_t id = k < n ? static_cast<uint32_t>(keys[k] >> 32) : kNone;
      const bool first = k < n && (k == 0 || keys[k - 1] >> 32 != id);
      rows[d] = first ? id : kNone;
      count += first;
    }
    shape.read(table, rows, static_cast<int>(threadIdx.x), [&](int d, int32_t at, Unit unit) {
      for (int64_t k = i + d * step; k < n && keys[k] >> 32 == rows[d]; ++k) {
        out[static_cast<int64_t>(keys[k] & 0xFFFFFFFFu) * shape.units + at] = unit;
      }
    });
    return true;
  });
  if ((threadIdx.x & ((1 << shape.lanes_log2) - 1)) == 0 && count > 0) atomicAdd(&found, count);
  __syncthreads();
  if (threadIdx.x == 0 && found > 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(distinct),
              static_cast<unsigned long long>(found));
  }
}

// Calls run(std::integral_constant) with the number of rows that a group reads at once.
template <class Run>
void with_depth(const Pages& pages, const Run& run) {
  switch (pages.depth) {
    case 1: return run(std::integral_constant<int, 1>{});
    case 2: return run(std::integral_constant<int, 2>{});
    default: return run(std::integral_constant<int, 4>{});
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

// Sorts the keys by their bits from `first` on, with kNowhere last.
const uint64_t* sorted(const Launch& launch, const Pages& pages, const PageOrder& order, int64_t n,
                       int first) {
  // Sorts by one bit above the ids' bits; only kNowhere has it set.
  const int last = std::min(32 + log2_floor(pages.num_rows) + 2, 64);
  first = std::min(first, last - 1);  // tables of one page: a reader stops at the first kNowhere
  size_t bytes = order.scratch_bytes;
  GNNBENCH_CUDA_CALL(launch, sort(order, bytes, n, first, last, launch.stream));
  return order.sorted;
}

// The ticket counter of a sweep, reset, in the memory that the sort used.
unsigned long long* tickets(const Launch& launch, const PageOrder& order) {
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(order.scratch, 0, kTickets, launch.stream));
  return static_cast<unsigned long long*>(order.scratch);
}

template <class Unit>
int64_t blocks_of(const Pages& pages, int64_t n, const RowShape<Unit>& shape) {
  return std::min<int64_t>(blocks_for(n << shape.lanes_log2, kReaders), pages.blocks);
}

}  // namespace

size_t page_order_scratch_bytes(Launch launch, int64_t n) {
  size_t bytes = 0;
  GNNBENCH_CUDA_CALL(launch, sort(PageOrder{}, bytes, n, 0, 64, launch.stream));
  return std::max(bytes, kTickets);
}

template <class Id>
void page_keys(Launch launch, const Id* ids, int64_t first, int64_t n, int64_t num_rows,
               uint64_t* keys) {
  if (n == 0) return;
  keys_kernel<<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(ids, first, n, num_rows,
                                                                       keys);
  GNNBENCH_CUDA_LAUNCHED(launch, "keys_kernel");
}

void gather_keys(Launch launch, const Pages& pages, const PageOrder& order, int64_t n, void* out) {
  if (n == 0 || pages.row_bytes == 0) return;
  const int first = 32 + log2_floor(pages.page_bytes / pages.row_bytes);
  const uint64_t* const keys = sorted(launch, pages, order, n, first);
  unsigned long long* const next = tickets(launch, order);
  with_unit(pages.table, out, pages.row_bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const RowShape<Unit> shape(pages.row_bytes);
    with_depth(pages, [&](auto depth) {
      read_kernel<Unit, decltype(depth)::value>
          <<<blocks_of(pages, n, shape), kReaders, 0, launch.stream>>>(
              static_cast<const Unit*>(pages.table), keys, n, shape, next, static_cast<Unit*>(out));
      GNNBENCH_CUDA_LAUNCHED(launch, "read_kernel");
    });
  });
}

void gather_once(Launch launch, const Pages& pages, const PageOrder& order, int64_t n,
                 int64_t* distinct, void* out) {
  if (n == 0) return;  // rows without bytes are still counted
  const uint64_t* const keys = sorted(launch, pages, order, n, 32);
  unsigned long long* const next = tickets(launch, order);
  with_unit(pages.table, out, pages.row_bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const RowShape<Unit> shape(pages.row_bytes);
    with_depth(pages, [&](auto depth) {
      once_kernel<Unit, decltype(depth)::value>
          <<<blocks_of(pages, n, shape), kReaders, 0, launch.stream>>>(
              static_cast<const Unit*>(pages.table), keys, n, shape, next, distinct,
              static_cast<Unit*>(out));
      GNNBENCH_CUDA_LAUNCHED(launch, "once_kernel");
    });
  });
}

template void page_keys<int32_t>(Launch, const int32_t*, int64_t, int64_t, int64_t, uint64_t*);
template void page_keys<int64_t>(Launch, const int64_t*, int64_t, int64_t, int64_t, uint64_t*);

}  // namespace gnnbench::cuda
