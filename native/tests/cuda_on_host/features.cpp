// The launcher of native/cuda/features/sharded.cu under a name that Python can call.
#include "cuda/features/sharded.h"
#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

extern "C" void sharded(const void* const* shards, int count, int own, int64_t num_rows,
                        const int32_t* places, const void* host, const void* ids, int wide,
                        int64_t n, int64_t num_nodes, int64_t row_bytes, uint64_t* keys,
                        int64_t* counts, int blocks, int depth, void* out) {
  Shards from{};
  for (int s = 0; s < count; ++s) from.at[s] = shards[s];
  from.count = count;
  from.own = own;
  from.num_rows = num_rows;
  const Launch launch{nullptr, "test"};
  const auto run = [&](const auto* which) {
    gather_sharded(launch, from, Reading{blocks, depth}, places, host, which, n, num_nodes,
                   row_bytes, keys, counts, out);
  };
  wide ? run(static_cast<const int64_t*>(ids)) : run(static_cast<const int32_t*>(ids));
}
