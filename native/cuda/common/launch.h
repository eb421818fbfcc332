// Argument of every launcher, and the reporting of CUDA errors.
//
// Launchers of the CUDA library take plain pointers to device memory and do not depend on torch.
// They do not allocate and do not wait for the device. `Id` is int32_t or int64_t. The caller
// provides scratch; a function `..._scratch_bytes` returns the size that CUB needs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace gnnbench::cuda {

// The device stream of a launch, and the operator name for error messages.
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

// Checks a CUDA call, or the last error after a kernel launch.
#define GNNBENCH_CUDA_CALL(launch, call) ::gnnbench::cuda::check((call), (launch).op, #call)
#define GNNBENCH_CUDA_LAUNCHED(launch, kernel) \
  ::gnnbench::cuda::check(cudaGetLastError(), (launch).op, kernel)
