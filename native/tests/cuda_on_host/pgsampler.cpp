// The launchers of native/cuda/pgsampler/published.cu under a name that Python can call. Blocks run
// one after the other, so that each waits for tasks of its own alone.
#include "cuda/pgsampler/published.h"
#include "tests/cuda_on_host/device.h"

extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 3;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                   size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}
}

using namespace gnnbench::cuda;

// arrays: addresses of rows, cols and positions of each hop. counts int64 [hops + 3]: edges of each
// hop, tasks enqueued and finished, faults.
template <class Id>
static void run(const int64_t* indptr, const void* indices, int64_t num_nodes, int64_t num_edges,
                const int64_t* seeds, int64_t n, const int64_t* fanouts, int hops, int64_t key,
                int64_t batch, int persistent, int fetch_size, int64_t tasks,
                const int64_t* capacity, void* const* arrays, int64_t* counts) {
  PublishedControl control{};
  std::vector<unsigned long long> queue(tasks);
  std::vector<uint32_t> known(hops * num_nodes);
  PublishedJob<Id> job{};
  job.graph = {indptr, static_cast<const Id*>(indices), num_nodes, num_edges};
  job.key = static_cast<uint64_t>(key);
  job.batch = static_cast<uint32_t>(batch);
  job.hops = static_cast<uint32_t>(hops);
  job.fetch_size = static_cast<uint32_t>(fetch_size);
  job.persistent = persistent != 0;
  job.known = known.data();
  job.queue = queue.data();
  job.queue_capacity = static_cast<uint32_t>(tasks);
  job.control = &control;
  for (int h = 0; h < hops; ++h) {
    job.fanouts[h] = static_cast<uint32_t>(fanouts[h]);
    job.arrays[h] = {static_cast<Id*>(arrays[3 * h]), static_cast<Id*>(arrays[3 * h + 1]),
                     static_cast<int64_t*>(arrays[3 * h + 2]), static_cast<uint32_t>(capacity[h])};
  }
  const Launch launch{nullptr, "test"};
  published_seeds(launch, job, Vertices{seeds, true}, n);
  published_run(launch, job);
  for (int h = 0; h < hops; ++h) counts[h] = static_cast<int64_t>(control.edges[h]);
  counts[hops] = gnnbench::tasks_enqueued(control.state);
  counts[hops + 1] = gnnbench::tasks_finished(control.state);
  counts[hops + 2] = control.faults;
}

extern "C" void published(int wide, const int64_t* indptr, const void* indices, int64_t num_nodes,
                          int64_t num_edges, const int64_t* seeds, int64_t n,
                          const int64_t* fanouts, int hops, int64_t key, int64_t batch,
                          int persistent, int fetch_size, int64_t tasks, const int64_t* capacity,
                          void* const* arrays, int64_t* counts) {
  (wide ? run<int64_t> : run<int32_t>)(indptr, indices, num_nodes, num_edges, seeds, n, fanouts,
                                       hops, key, batch, persistent, fetch_size, tasks, capacity,
                                       arrays, counts);
}
