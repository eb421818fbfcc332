// The launcher of native/cuda/features/over.cu under a name that Python can call.
#include "cuda/features/over.h"

#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

// Each level is five numbers: rows, count, slots, generations, generation.
extern "C" void over(const int64_t* levels, int count, int remember, const void* ids, int wide,
                     int64_t n, int64_t num_nodes, int64_t row_bytes, uint64_t* keys, int64_t* hits,
                     void* out) {
  KeptRows kept[2] = {};
  for (int l = 0; l < count; ++l, levels += 5) {
    kept[l] = {reinterpret_cast<const void*>(levels[0]), levels[1],
               Lookup{reinterpret_cast<int32_t*>(levels[2]), reinterpret_cast<int32_t*>(levels[3]),
                      static_cast<int32_t>(levels[4]), l == 0 && remember != 0}};
  }
  const Launch launch{nullptr, "test"};
  const auto run = [&](const auto* which) {
    gather_kept(launch, kept, count, which, n, num_nodes, row_bytes, keys, hits, out);
  };
  wide ? run(static_cast<const int64_t*>(ids)) : run(static_cast<const int32_t*>(ids));
}
