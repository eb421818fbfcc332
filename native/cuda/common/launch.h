// What every launcher takes, and the one way in which CUDA errors are reported.
//
// The launchers of the CUDA library take plain pointers into device memory, no torch. Nothing
// allocates and nothing waits for the device. `Id` is int32_t or int64_t. Scratch is given by the
// caller; a function `..._scratch_bytes` says how much CUB wants.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace gnnbench::cuda {

// Where a launcher's work goes, and the operator that errors name.
struct Launch {
  cudaStream_t stream;
  const char* op;
};

inline void check(cudaError_t status, const char* op, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("gnnbench::") + op + ": " + cudaGetErrorString(status) +
                           " (" + cudaGetErrorName(status) + ") in " + what);
}

inline int64_t blocks_for(int64_t items, int64_t per_block) {
  return (items + per_block - 1) / per_block;
}

}  // namespace gnnbench::cuda

// The one check of CUDA calls, and the one of the last error after a kernel launch.
#define GNNBENCH_CUDA_CALL(launch, call) ::gnnbench::cuda::check((call), (launch).op, #call)
#define GNNBENCH_CUDA_LAUNCHED(launch, kernel) \
  ::gnnbench::cuda::check(cudaGetLastError(), (launch).op, kernel)
