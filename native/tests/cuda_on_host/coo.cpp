// The launchers of native/cuda/coo under a name that Python can call.
#include "cuda/coo/coo.h"

#include "tests/cuda_on_host/device.h"

using namespace gnnbench::cuda;

// indptr int32 [num_rows + 1], zero before.
extern "C" void coo_to_csr(const int32_t* rows, const int32_t* cols, const int64_t* positions,
                           int64_t n, int64_t num_rows, int32_t* indptr, int32_t* indices,
                           int64_t* out_positions) {
  const Launch launch{nullptr, "test"};
  std::vector<int32_t> ranks(n);
  coo_count(launch, rows, n, indptr, ranks.data());
  int32_t sum = 0;
  for (int64_t r = 0; r <= num_rows; ++r) {
    const int32_t count = indptr[r];
    indptr[r] = sum;
    sum += count;
  }
  coo_place(launch, {rows, ranks.data(), cols, positions, n}, indptr, indices, out_positions);
}
