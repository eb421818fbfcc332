// In-place exclusive sums (cub::DeviceScan).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

template <class T>
size_t scan_scratch_bytes(Launch launch, int64_t n);
template <class T>
void exclusive_scan(Launch launch, void* scratch, size_t scratch_bytes, T* data, int64_t n);

}  // namespace gnnbench::cuda
