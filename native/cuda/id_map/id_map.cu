// Id map in three passes, as in DGL's OrderedHashTable: insert every key with its smallest
// position; rank the first occurrences by a scan and compact them; map the neighbours. A key's
// local id is its order of first occurrence and does not depend on the schedule. Each pass is a
// separate launch, so a pass sees all writes of the previous one.
#include "cuda/common/atomics.cuh"
#include "cuda/id_map/id_map.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ int32_t exchange_if_empty(int32_t* key, int32_t id) {
  return atomicCAS(key, -1, id);
}

__device__ __forceinline__ int64_t exchange_if_empty(int64_t* key, int64_t id) {
  return static_cast<int64_t>(atomicCAS(reinterpret_cast<unsigned long long*>(key),
                                        static_cast<unsigned long long>(-1),
                                        static_cast<unsigned long long>(id)));
}

// Fibonacci hashing: the high bits of a product with 2^64 / golden ratio.
__device__ __forceinline__ uint32_t home_slot(int64_t id, int shift) {
  return static_cast<uint32_t>((static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15ull) >> shift);
}

template <class Id>
__device__ __forceinline__ Id item(const IdMapItems<Id>& items, int64_t i) {
  return i < items.num_dst ? items.dst[i] : items.neighbors[i - items.num_dst];
}

// The slot of a key that was inserted. An id that never was, a negative one, ends at an empty slot.
template <class Id>
__device__ __forceinline__ uint32_t probe(const IdMapScratch<Id>& scratch, Id id, int shift) {
  const uint32_t mask = static_cast<uint32_t>(scratch.capacity - 1);
  uint32_t slot = home_slot(static_cast<int64_t>(id), shift);
  for (;;) {
    const Id held = scratch.keys[slot];
    if (held == -1 || held == id) return slot;
    slot = (slot + 1) & mask;
  }
}

template <class Id, bool kProbes>
__device__ __forceinline__ uint32_t slot_of(const IdMapItems<Id>& items,
                                            const IdMapScratch<Id>& scratch, int64_t i, int shift) {
  if constexpr (kProbes) return probe(scratch, item(items, i), shift);
  return scratch.slot_of[i];
}

template <class Id, bool kProbes>
__global__ void insert_kernel(IdMapItems<Id> items, IdMapScratch<Id> scratch, int shift) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= items.size()) return;
  const Id id = item(items, i);
  if (id < 0) {
    report_fault(scratch.ranks + items.size() + 1, Fault::kNegativeId);
    if constexpr (!kProbes) scratch.slot_of[i] = 0;
    return;
  }
  const uint32_t mask = static_cast<uint32_t>(scratch.capacity - 1);
  uint32_t slot = home_slot(static_cast<int64_t>(id), shift);
  // Terminates: the table has more slots than items, and a stored key never changes.
  for (;;) {
    const Id held = exchange_if_empty(scratch.keys + slot, id);
    if (held == -1 || held == id) break;
    slot = (slot + 1) & mask;
  }
  atomicMin(scratch.values + slot, static_cast<int32_t>(i));
  if constexpr (!kProbes) scratch.slot_of[i] = slot;
}

template <class Id, bool kProbes>
__global__ void flag_kernel(IdMapItems<Id> items, IdMapScratch<Id> scratch, int shift,
                            const int64_t* hop_faults) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t n = items.size();
  if (i > n) return;
  const bool first = i < n && scratch.values[slot_of<Id, kProbes>(items, scratch, i, shift)] ==
                                  static_cast<int32_t>(i);
  int32_t* faults = scratch.ranks + n + 1;
  if (i < items.num_dst && !first) report_fault(faults, Fault::kRepeatedSeed);
  if (i == n && hop_faults != nullptr) report_fault(faults, static_cast<Fault>(*hop_faults));
  scratch.ranks[i] = first;
}

template <class Id, bool kProbes>
__global__ void compact_kernel(IdMapItems<Id> items, IdMapScratch<Id> scratch, int shift,
                               Id* src_nodes) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= items.size()) return;
  const int32_t rank = scratch.ranks[i];
  if constexpr (kProbes) {  // as DGL: every item looks its key up
    int32_t& value = scratch.values[probe(scratch, item(items, i), shift)];
    if (value != static_cast<int32_t>(i)) return;  // a rank written here is below each later item
    src_nodes[rank] = item(items, i);
    value = rank;
  } else {
    if (scratch.ranks[i + 1] == rank) return;  // not the first occurrence
    src_nodes[rank] = item(items, i);
    scratch.values[scratch.slot_of[i]] = rank;
  }
}

template <class Id, bool kProbes>
__global__ void map_kernel(IdMapItems<Id> items, IdMapScratch<Id> scratch, int shift,
                           int32_t* local) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e >= items.num_neighbors) return;
  local[e] = scratch.values[slot_of<Id, kProbes>(items, scratch, items.num_dst + e, shift)];
}

template <class Id>
__global__ void find_kernel(IdMapScratch<Id> scratch, const Id* ids, int64_t n, int shift,
                            int32_t* local) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) local[i] = scratch.values[probe(scratch, ids[i], shift)];
}

int log2_of(int64_t power) {
  int bits = 0;
  while ((int64_t{1} << bits) < power) ++bits;
  return bits;
}

template <class Id>
int shift_of(const IdMapScratch<Id>& scratch) {
  return 64 - log2_of(scratch.capacity);
}

template <class Id, bool kProbes>
void insert_and_flag(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch,
                     const int64_t* hop_faults) {
  const int64_t n = items.size();
  const int shift = shift_of(scratch);
  if (n > 0) {
    insert_kernel<Id, kProbes>
        <<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(items, scratch, shift);
    GNNBENCH_CUDA_LAUNCHED(launch, "insert_kernel");
  }
  flag_kernel<Id, kProbes><<<blocks_for(n + 1, kThreads), kThreads, 0, launch.stream>>>(
      items, scratch, shift, hop_faults);
  GNNBENCH_CUDA_LAUNCHED(launch, "flag_kernel");
}

template <class Id, bool kProbes>
void compact_and_map(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch, Id* src_nodes,
                     int32_t* local) {
  const int shift = shift_of(scratch);
  compact_kernel<Id, kProbes><<<blocks_for(items.size(), kThreads), kThreads, 0, launch.stream>>>(
      items, scratch, shift, src_nodes);
  GNNBENCH_CUDA_LAUNCHED(launch, "compact_kernel");
  if (items.num_neighbors == 0) return;
  map_kernel<Id, kProbes>
      <<<blocks_for(items.num_neighbors, kThreads), kThreads, 0, launch.stream>>>(items, scratch,
                                                                                  shift, local);
  GNNBENCH_CUDA_LAUNCHED(launch, "map_kernel");
}

}  // namespace

int64_t id_map_capacity(int64_t n) {
  int64_t capacity = 64;
  while (capacity < 2 * n) capacity *= 2;
  return capacity;
}

template <class Id>
void id_map_insert(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch,
                   const int64_t* hop_faults) {
  const int64_t n = items.size();
  GNNBENCH_CUDA_CALL(launch,
                     cudaMemsetAsync(scratch.ranks + n + 1, 0, sizeof(int32_t), launch.stream));
  if (n > 0) {
    GNNBENCH_CUDA_CALL(
        launch, cudaMemsetAsync(scratch.keys, 0xFF, scratch.capacity * sizeof(Id), launch.stream));
    GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(scratch.values, 0x7F,
                                               scratch.capacity * sizeof(int32_t), launch.stream));
  }
  scratch.slot_of == nullptr ? insert_and_flag<Id, true>(launch, items, scratch, hop_faults)
                             : insert_and_flag<Id, false>(launch, items, scratch, hop_faults);
}

template <class Id>
void id_map_finish(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch, Id* src_nodes,
                   int32_t* local) {
  if (items.size() == 0) return;
  scratch.slot_of == nullptr ? compact_and_map<Id, true>(launch, items, scratch, src_nodes, local)
                             : compact_and_map<Id, false>(launch, items, scratch, src_nodes, local);
}

template <class Id>
void id_map_find(Launch launch, IdMapScratch<Id> scratch, const Id* ids, int64_t n,
                 int32_t* local) {
  if (n == 0) return;
  find_kernel<Id><<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(
      scratch, ids, n, shift_of(scratch), local);
  GNNBENCH_CUDA_LAUNCHED(launch, "find_kernel");
}

template void id_map_insert<int32_t>(Launch, IdMapItems<int32_t>, IdMapScratch<int32_t>,
                                     const int64_t*);
template void id_map_insert<int64_t>(Launch, IdMapItems<int64_t>, IdMapScratch<int64_t>,
                                     const int64_t*);
template void id_map_finish<int32_t>(Launch, IdMapItems<int32_t>, IdMapScratch<int32_t>, int32_t*,
                                     int32_t*);
template void id_map_finish<int64_t>(Launch, IdMapItems<int64_t>, IdMapScratch<int64_t>, int64_t*,
                                     int32_t*);
template void id_map_find<int32_t>(Launch, IdMapScratch<int32_t>, const int32_t*, int64_t,
                                   int32_t*);
template void id_map_find<int64_t>(Launch, IdMapScratch<int64_t>, const int64_t*, int64_t,
                                   int32_t*);

}  // namespace gnnbench::cuda
