// The launcher of native/cuda/hop/reservoir_by_block.cu under a name that Python can call.
#include "cuda/hop/row.cuh"
#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

// offsets: int64 [n + 2], scanned, then the faults.
template <class Id>
static void run(const int64_t* indptr, const void* indices, int64_t num_nodes, int64_t num_edges,
                const void* dst, int64_t n, uint32_t fanout, uint64_t key, uint32_t hop,
                uint32_t batch, int64_t* offsets, uint32_t* slots, int32_t* out_indptr,
                void* neighbors, int64_t* positions) {
  HopJob<Id> job{};
  job.graph = {indptr, static_cast<const Id*>(indices), num_nodes, num_edges};
  job.dst = {dst, sizeof(Id) == 8};
  job.n = n;
  job.draws = {{}, fanout, key, hop, batch};
  job.draws.spec.pick = gnnbench::Pick::kReservoir;
  job.offsets = offsets;
  job.slots = slots;
  job.out = {out_indptr, 0, static_cast<Id*>(neighbors), positions};
  hop_reservoir_by_block(Launch{nullptr, "test"}, job);
}

extern "C" void reservoir_by_block(int wide, const int64_t* indptr, const void* indices,
                                   int64_t num_nodes, int64_t num_edges, const void* dst, int64_t n,
                                   int64_t fanout, int64_t key, int64_t hop, int64_t batch,
                                   int64_t* offsets, uint32_t* slots, int32_t* out_indptr,
                                   void* neighbors, int64_t* positions) {
  const auto call = wide ? run<int64_t> : run<int32_t>;
  call(indptr, indices, num_nodes, num_edges, dst, n, static_cast<uint32_t>(fanout),
       static_cast<uint64_t>(key), static_cast<uint32_t>(hop), static_cast<uint32_t>(batch),
       offsets, slots, out_indptr, neighbors, positions);
}
