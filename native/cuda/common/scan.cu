#include <cub/device/device_scan.cuh>

#include "cuda/common/scan.h"

namespace gnnbench::cuda {

template <class T>
size_t scan_scratch_bytes(Launch launch, int64_t n) {
  size_t bytes = 0;
  T* none = nullptr;
  GNNBENCH_CUDA_CALL(launch, cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, n, launch.stream));
  return bytes;
}

template <class T>
void exclusive_scan(Launch launch, void* scratch, size_t scratch_bytes, T* data, int64_t n) {
  GNNBENCH_CUDA_CALL(launch,
                     cub::DeviceScan::ExclusiveSum(scratch, scratch_bytes, data, n, launch.stream));
}

template size_t scan_scratch_bytes<int32_t>(Launch, int64_t);
template size_t scan_scratch_bytes<int64_t>(Launch, int64_t);
template void exclusive_scan<int32_t>(Launch, void*, size_t, int32_t*, int64_t);
template void exclusive_scan<int64_t>(Launch, void*, size_t, int64_t*, int64_t);

}  // namespace gnnbench::cuda
