// A launcher of native/cuda/features/gather.cu under a name that Python can call.
#include "cuda/features/gather.h"

#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

extern "C" void gather_to(const void* table, int64_t num_rows, const void* ids, int wide, int64_t n,
                          int64_t row_bytes, const int32_t* places, int64_t out_rows, void* out,
                          int64_t blocks, int aligned) {
  const Launch launch{nullptr, "test"};
  const auto run = [&](const auto* which) {
    gather_rows_to(launch, table, num_rows, which, n, row_bytes, places, out_rows, out, blocks,
                   aligned != 0);
  };
  wide ? run(static_cast<const int64_t*>(ids)) : run(static_cast<const int32_t*>(ids));
}
