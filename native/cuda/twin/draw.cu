// Twin graphs on the GPU, second part: a warp draws a row.
//
// The row's edges at a level are the first `wanted` distinct values of a sequence (draws by weight,
// then positions from a drawn start). As many further values are tested at once as are still
// missing. So none can exceed the number wanted, and the set equals the CPU's for any order of the
// lanes. Sets are hash tables of twice the row in global memory. One sort of (destination, source)
// keys, all distinct, then determines the order inside a row.
#include "cuda/twin/rows.cuh"
#include "cuda/twin/twin.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr uint32_t kEmpty = 0xFFFFFFFFu;

// Inserts the value. Returns whether it is new.
__device__ bool insert(uint32_t* set, uint32_t capacity, uint32_t value) {
  uint32_t slot = bounded(value * 0x9E3779B1u, capacity);
  for (;;) {
    const uint32_t old = atomicCAS(&set[slot], kEmpty, value);
    if (old == kEmpty) return true;
    if (old == value) return false;
    slot = slot + 1 == capacity ? 0 : slot + 1;
  }
}

// The p in [low, high) with prefix[p] <= y < prefix[p + 1].
__device__ uint32_t find(const uint64_t* prefix, uint32_t low, uint32_t high, uint64_t y) {
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (prefix[middle] <= y) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__global__ void __launch_bounds__(kThreads)
    draw_kernel(TwinRows rows, const int64_t* start, uint32_t* slots, int id_bits, uint64_t* keys) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  if (row >= rows.n) return;  // uniform over a warp
  const unsigned lane = threadIdx.x % kWarp;
  const RowBounds bounds(rows, row);
  const auto position = static_cast<uint32_t>(row);
  const uint64_t own_id = rows.id_of[row];
  int64_t out = start[row];
  for (int level = 0; level < twin::kLevels; ++level) {
    const uint32_t wanted = rows.wanted[level][row];
    if (wanted == 0) continue;
    const uint64_t* prefix = rows.prefix[level == 0];
    const twin::Range range = twin::level_range(bounds.at, level, rows.symmetric);
    const uint64_t total = range.weight(prefix);
    const Draws draws =
        twin::draws(rows.weights.key, twin::kStreamEdges + static_cast<uint32_t>(level), position);
    const uint32_t limit = twin::draw_limit(wanted);
    uint32_t* set = slots + 2 * out;
    const uint32_t capacity = 2 * wanted;
    uint32_t missing = wanted;
    for (uint32_t done = 0; total > 0 && missing > 0 && done < limit;) {
      const uint32_t count = missing < limit - done ? missing : limit - done;
      uint32_t added = 0;
      for (uint32_t i = lane; i < count; i += kWarp) {
        const uint64_t y = range.point(prefix, total, twin::draw64(draws, done + i));
        added += insert(set, capacity, find(prefix, range.lo, range.hi, y));
      }
      missing -= __reduce_add_sync(kAllLanes, added);
      done += count;
    }
    const uint32_t places = range.count();
    uint64_t at = missing > 0 ? twin::mul_hi64(twin::draw64(draws, limit), places) : 0;
    while (missing > 0) {
      uint32_t added = 0;
      for (uint32_t i = lane; i < missing; i += kWarp) {
        added += insert(set, capacity, range.at(static_cast<uint32_t>((at + i) % places)));
      }
      at += missing;
      missing -= __reduce_add_sync(kAllLanes, added);
    }
    __syncwarp();
    for (uint32_t first = 0; first < capacity; first += kWarp) {
      const uint32_t value = first + lane < capacity ? set[first + lane] : kEmpty;
      const unsigned filled = __ballot_sync(kAllLanes, value != kEmpty);
      if (value != kEmpty) {
        const int64_t edge = out + __popc(filled & ((1u << lane) - 1u));
        const uint64_t id = rows.id_of[value];
        if (rows.symmetric) {
          keys[2 * edge] = own_id << id_bits | id;
          keys[2 * edge + 1] = id << id_bits | own_id;
        } else {
          keys[edge] = own_id << id_bits | id;
        }
      }
      out += __popc(filled);
    }
  }
}

// One thread per edge and one per offset: finds the first key of a destination.
template <class Id>
__global__ void csc_kernel(const uint64_t* keys, int64_t num_edges, int64_t n, int id_bits,
                           int64_t* indptr, Id* indices) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < num_edges) indices[i] = static_cast<Id>(keys[i] & ((uint64_t{1} << id_bits) - 1));
  if (i > n) return;
  const uint64_t wanted = static_cast<uint64_t>(i) << id_bits;
  int64_t low = 0, count = num_edges;
  while (count > 0) {
    const int64_t half = count / 2;
    if (keys[low + half] < wanted) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  indptr[i] = low;
}

}  // namespace

void twin_draw(Launch launch, TwinRows rows, const int64_t* start, uint32_t* slots, int id_bits,
               uint64_t* keys) {
  draw_kernel<<<blocks_for(rows.n * kWarp, kThreads), kThreads, 0, launch.stream>>>(
      rows, start, slots, id_bits, keys);
  GNNBENCH_CUDA_LAUNCHED(launch, "draw_kernel");
}

template <class Id>
void twin_csc(Launch launch, const uint64_t* keys, int64_t num_edges, int64_t n, int id_bits,
              int64_t* indptr, Id* indices) {
  const int64_t items = num_edges > n + 1 ? num_edges : n + 1;
  csc_kernel<Id><<<blocks_for(items, kThreads), kThreads, 0, launch.stream>>>(
      keys, num_edges, n, id_bits, indptr, indices);
  GNNBENCH_CUDA_LAUNCHED(launch, "csc_kernel");
}

template void twin_csc<int32_t>(Launch, const uint64_t*, int64_t, int64_t, int, int64_t*, int32_t*);
template void twin_csc<int64_t>(Launch, const uint64_t*, int64_t, int64_t, int, int64_t*, int64_t*);

}  // namespace gnnbench::cuda
