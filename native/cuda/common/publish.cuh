// Completes a notification from within a kernel.
#pragma once

#include <cuda/atomic>

#include "cuda/common/notification.h"

namespace gnnbench::cuda {

// Call it from the thread that wrote the numbers, or after a barrier among those that did.
__device__ inline void publish(const Notification& notification) {
  if (notification.ready == nullptr) return;
  ::cuda::atomic_ref<uint64_t, ::cuda::thread_scope_system>(*notification.ready)
      .store(notification.sequence, ::cuda::memory_order_release);
}

}  // namespace gnnbench::cuda
