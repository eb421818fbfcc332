#include <type_traits>

#include "cuda/common/device_assert.h"
#include "cuda/features/over.h"
#include "cuda/features/page_order.h"
#include "cuda/features/rows.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

template <int kLevels>
struct Levels {
  KeptRows at[kLevels];
};

template <int kLevels, class Id, class Unit>
__global__ void __launch_bounds__(kThreads)
    kept_kernel(Levels<kLevels> kept, const Id* __restrict__ ids, int64_t n, int64_t num_nodes,
                RowShape<Unit> shape, uint64_t* __restrict__ keys, int64_t* __restrict__ hits,
                Unit* __restrict__ out) {
  __shared__ int found[kLevels];
  if (threadIdx.x < kLevels) found[threadIdx.x] = 0;
  __syncthreads();
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t i = thread >> shape.lanes_log2;
  const bool first = (thread & ((1 << shape.lanes_log2) - 1)) == 0;
  int64_t id = 0;
  int32_t slot = -1;
  int level = 0;
  const Unit* rows = nullptr;
  if (i < n) {
    id = static_cast<int64_t>(ids[i]);
    assert(id >= 0 && id < num_nodes && "gnnbench gather: an id is outside the table");
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      const KeptRows& from = kept.at[l];
      if (slot >= 0 || from.lookup.generations[id] != from.lookup.generation) continue;
      slot = from.lookup.slots[id];
      assert(slot < from.count && "gnnbench gather: a slot is outside the kept rows");
      level = l;
      rows = static_cast<const Unit*>(from.rows);
    }
  }
  __syncwarp();  // all lanes of a row have read the entry that the first lane overwrites
  if (i < n) {
    if (slot >= 0) shape.copy(rows, slot, out, i, static_cast<int>(thread));
    if (first) {
      keys[i] = slot >= 0 ? kNowhere : static_cast<uint64_t>(id) << 32 | static_cast<uint32_t>(i);
      if (slot >= 0) atomicAdd(&found[level], 1);
      const Lookup& lookup = kept.at[0].lookup;
      if (lookup.remember) {
        lookup.slots[id] = static_cast<int32_t>(i);
        lookup.generations[id] = lookup.generation + 1;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < kLevels && found[threadIdx.x] > 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(hits) + threadIdx.x,
              static_cast<unsigned long long>(found[threadIdx.x]));
  }
}

}  // namespace

template <class Id>
void gather_kept(Launch launch, const KeptRows* kept, int levels, const Id* ids, int64_t n,
                 int64_t num_nodes, int64_t row_bytes, uint64_t* keys, int64_t* hits, void* out) {
  if (n == 0) return;
  const auto run = [&](auto count) {
    constexpr int kLevels = decltype(count)::value;
    Levels<kLevels> from;
    uintptr_t addresses = 0;
    for (int l = 0; l < kLevels; ++l) {
      from.at[l] = kept[l];
      addresses |= reinterpret_cast<uintptr_t>(kept[l].rows);
    }
    with_unit(reinterpret_cast<const void*>(addresses), out, row_bytes, [&](auto unit) {
      using Unit = decltype(unit);
      const RowShape<Unit> shape(row_bytes, false);
      kept_kernel<kLevels, Id, Unit>
          <<<blocks_for(n << shape.lanes_log2, kThreads), kThreads, 0, launch.stream>>>(
              from, ids, n, num_nodes, shape, keys, hits, static_cast<Unit*>(out));
      GNNBENCH_CUDA_LAUNCHED(launch, "kept_kernel");
    });
  };
  levels == 1 ? run(std::integral_constant<int, 1>{}) : run(std::integral_constant<int, 2>{});
}

template void gather_kept<int32_t>(Launch, const KeptRows*, int, const int32_t*, int64_t, int64_t,
                                   int64_t, uint64_t*, int64_t*, void*);
template void gather_kept<int64_t>(Launch, const KeptRows*, int, const int64_t*, int64_t, int64_t,
                                   int64_t, uint64_t*, int64_t*, void*);

}  // namespace gnnbench::cuda
