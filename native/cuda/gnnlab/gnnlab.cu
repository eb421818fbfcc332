// GNNLab's id map on the GPU: a hop's neighbours are inserted into the table of the batch, new ones
// are ranked by a scan and compacted, and all are mapped. Each pass is a separate launch, so a pass
// sees all writes of the previous one. A new node's rank is that of the neighbour whose thread
// inserted it.
#include "cuda/common/atomics.cuh"
#include "cuda/gnnlab/gnnlab.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

struct Inserted {
  uint64_t slot;
  bool fresh;
};

// Terminates: the table has more slots than the batch has nodes, and a current entry never changes.
__device__ __forceinline__ Inserted insert(const VersionedTable& table, int64_t vertex) {
  const uint64_t mine = table.entry(vertex);
  for (uint64_t slot = table.home(vertex);; slot = table.after(slot)) {
    auto* const at = reinterpret_cast<unsigned long long*>(table.entries + slot);
    uint64_t found = *reinterpret_cast<volatile unsigned long long*>(at);
    if (!table.current(found)) {
      const uint64_t before = atomicCAS(at, found, mine);
      if (before == found) return {slot, true};
      found = before;  // another thread has made the entry current
    }
    if (found == mine) return {slot, false};
  }
}

template <class Id>
__global__ void seeds_kernel(VersionedTable table, const Id* seeds, int64_t n, int32_t* faults) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const Inserted r = insert(table, seeds[i]);
  if (r.fresh) {
    table.ids[r.slot] = static_cast<int32_t>(i);
  } else {
    report_fault(faults, Fault::kRepeatedSeed);
  }
}

template <class Id>
__global__ void insert_kernel(VersionedHop<Id> hop, const int32_t* seeds_faults,
                              const int64_t* hop_faults) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e == hop.n) {
    const int32_t seeds = seeds_faults != nullptr ? *seeds_faults : 0;
    hop.ranks[e] = 0;
    hop.ranks[e + 1] = seeds | static_cast<int32_t>(*hop_faults);
  }
  if (e >= hop.n) return;
  const int64_t id = hop.neighbors[e];
  // The fault of an invalid graph is reported at the next synchronisation. Until then nothing is
  // written.
  const bool valid = static_cast<uint64_t>(id) < static_cast<uint64_t>(hop.num_nodes);
  const Inserted r = valid ? insert(hop.table, id) : Inserted{0, false};
  hop.local[e] = static_cast<int32_t>(r.slot);
  hop.ranks[e] = r.fresh;
}

template <class Id>
__global__ void compact_kernel(VersionedHop<Id> hop, Id* nodes) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e >= hop.n) return;
  const int32_t rank = hop.ranks[e];
  if (hop.ranks[e + 1] == rank) return;  // already known
  const int32_t id = hop.known + rank;
  nodes[id] = hop.neighbors[e];
  hop.table.ids[static_cast<uint32_t>(hop.local[e])] = id;
}

template <class Id>
__global__ void map_kernel(VersionedHop<Id> hop) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e < hop.n) hop.local[e] = hop.table.ids[static_cast<uint32_t>(hop.local[e])];
}

}  // namespace

template <class Id>
void versioned_seeds(Launch launch, VersionedTable table, const Id* seeds, int64_t n,
                     int32_t* faults) {
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(faults, 0, sizeof(int32_t), launch.stream));
  if (n == 0) return;
  seeds_kernel<Id>
      <<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(table, seeds, n, faults);
  GNNBENCH_CUDA_LAUNCHED(launch, "seeds_kernel");
}

template <class Id>
void versioned_insert(Launch launch, VersionedHop<Id> hop, const int32_t* seeds_faults,
                      const int64_t* hop_faults) {
  insert_kernel<Id><<<blocks_for(hop.n + 1, kThreads), kThreads, 0, launch.stream>>>(
      hop, seeds_faults, hop_faults);
  GNNBENCH_CUDA_LAUNCHED(launch, "insert_kernel");
}

template <class Id>
void versioned_finish(Launch launch, VersionedHop<Id> hop, Id* nodes) {
  if (hop.n == 0) return;
  const int64_t blocks = blocks_for(hop.n, kThreads);
  compact_kernel<Id><<<blocks, kThreads, 0, launch.stream>>>(hop, nodes);
  GNNBENCH_CUDA_LAUNCHED(launch, "compact_kernel");
  map_kernel<Id><<<blocks, kThreads, 0, launch.stream>>>(hop);
  GNNBENCH_CUDA_LAUNCHED(launch, "map_kernel");
}

template void versioned_seeds<int32_t>(Launch, VersionedTable, const int32_t*, int64_t, int32_t*);
template void versioned_seeds<int64_t>(Launch, VersionedTable, const int64_t*, int64_t, int32_t*);
template void versioned_insert<int32_t>(Launch, VersionedHop<int32_t>, const int32_t*,
                                        const int64_t*);
template void versioned_insert<int64_t>(Launch, VersionedHop<int64_t>, const int32_t*,
                                        const int64_t*);
template void versioned_finish<int32_t>(Launch, VersionedHop<int32_t>, int32_t*);
template void versioned_finish<int64_t>(Launch, VersionedHop<int64_t>, int64_t*);

}  // namespace gnnbench::cuda
