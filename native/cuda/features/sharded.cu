#include <algorithm>
#include <type_traits>

#include "cuda/common/device_assert.h"
#include "cuda/features/page_order.h"
#include "cuda/features/rows.cuh"
#include "cuda/features/sharded.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPaths = 3;  // own shard, other shard, no shard

// All groups of lanes process rows concurrently. Each requests kDepth rows before it waits.
template <int kDepth, class Id, class Unit>
__global__ void __launch_bounds__(kThreads)
    sharded_kernel(const Shards shards, const int32_t* __restrict__ places,
                   const Unit* __restrict__ host, const Id* __restrict__ ids, int64_t n,
                   int64_t num_nodes, RowShape<Unit> shape, uint64_t* __restrict__ keys,
                   int64_t* __restrict__ counts, Unit* __restrict__ out) {
  __shared__ int found[kPaths];
  if (threadIdx.x < kPaths) found[threadIdx.x] = 0;
  __syncthreads();
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t groups = static_cast<int64_t>(gridDim.x) * (kThreads >> shape.lanes_log2);
  const int lanes = 1 << shape.lanes_log2, lane = static_cast<int>(thread) & (lanes - 1);
  const uint32_t count = static_cast<uint32_t>(shards.count);
  int paths[kPaths] = {0, 0, 0};
  for (int64_t i = thread >> shape.lanes_log2; i < n; i += groups * kDepth) {
    const Unit* from[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      from[d] = nullptr;
      const int64_t k = i + d * groups;
      if (k >= n) continue;
      const int64_t id = static_cast<int64_t>(ids[k]);
      assert(id >= 0 && id < num_nodes && "gnnbench gather: an id is outside the table");
      const int64_t place = places == nullptr ? id : places[id];
      assert(place < shards.num_rows && "gnnbench gather: a place is outside the shards");
      if (place >= 0) {
        const uint32_t row = static_cast<uint32_t>(place) / count;
        const int owner = static_cast<int>(static_cast<uint32_t>(place) - row * count);
        from[d] = static_cast<const Unit*>(shards.at[owner]) + int64_t{row} * shape.units;
        ++paths[owner != shards.own];
      } else {
        assert((host != nullptr || keys != nullptr) && "gnnbench gather: a row is in no shard");
        if (keys == nullptr) from[d] = host + id * shape.units;
        ++paths[2];
      }
      if (keys != nullptr && lane == 0) {
        keys[k] =
            place >= 0 ? kNowhere : static_cast<uint64_t>(id) << 32 | static_cast<uint32_t>(k);
      }
    }
    for (int32_t u = lane; u < shape.units; u += lanes) {
      Unit unit[kDepth];
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        if (from[d] != nullptr) unit[d] = __ldg(from[d] + u);
      }
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        if (from[d] != nullptr) out[(i + d * groups) * shape.units + u] = unit[d];
      }
    }
  }
  if (lane == 0) {
#pragma unroll
    for (int p = 0; p < kPaths; ++p) {
      if (paths[p] > 0) atomicAdd(&found[p], paths[p]);
    }
  }
  __syncthreads();
  if (threadIdx.x < kPaths && found[threadIdx.x] > 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(counts + threadIdx.x),
              static_cast<unsigned long long>(found[threadIdx.x]));
  }
}

// Calls run(std::integral_constant) with the number of rows that a group of lanes reads at once.
template <class Run>
void with_depth(int depth, const Run& run) {
  switch (depth) {
    case 1: return run(std::integral_constant<int, 1>{});
    case 2: return run(std::integral_constant<int, 2>{});
    default: return run(std::integral_constant<int, 4>{});
  }
}

// An address with the low bits of all shards' and the host's addresses: gives their common
// alignment.
const void* alignment_of(const Shards& shards, const void* host) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(host);
  for (int s = 0; s < shards.count; ++s) bits |= reinterpret_cast<uintptr_t>(shards.at[s]);
  return reinterpret_cast<const void*>(bits);
}

}  // namespace

template <class Id>
void gather_sharded(Launch launch, const Shards& shards, const Reading& reading,
                    const int32_t* places, const void* host, const Id* ids, int64_t n,
                    int64_t num_nodes, int64_t row_bytes, uint64_t* keys, int64_t* counts,
                    void* out) {
  if (n == 0) return;  // rows without bytes are still counted
  with_unit(alignment_of(shards, host), out, row_bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const RowShape<Unit> shape(row_bytes, false);
    with_depth(reading.depth, [&](auto depth) {
      constexpr int kDepth = decltype(depth)::value;
      int64_t blocks = blocks_for(blocks_for(n, kDepth) << shape.lanes_log2, kThreads);
      if (reading.blocks > 0) blocks = std::min<int64_t>(blocks, reading.blocks);
      sharded_kernel<kDepth, Id, Unit><<<blocks, kThreads, 0, launch.stream>>>(
          shards, places, static_cast<const Unit*>(host), ids, n, num_nodes, shape, keys, counts,
          static_cast<Unit*>(out));
      GNNBENCH_CUDA_LAUNCHED(launch, "sharded_kernel");
    });
  });
}

template void gather_sharded<int32_t>(Launch, const Shards&, const Reading&, const int32_t*,
                                      const void*, const int32_t*, int64_t, int64_t, int64_t,
                                      uint64_t*, int64_t*, void*);
template void gather_sharded<int64_t>(Launch, const Shards&, const Reading&, const int32_t*,
                                      const void*, const int64_t*, int64_t, int64_t, int64_t,
                                      uint64_t*, int64_t*, void*);

}  // namespace gnnbench::cuda
