// The end of a letter, for the kernels that write one.
#pragma once

#include <cuda/atomic>

#include "cuda/common/mailbox.h"

namespace gnnbench::cuda {

// By the thread that wrote the numbers, or behind a barrier after those that did.
__device__ inline void seal(const Letter& letter) {
  if (letter.ready == nullptr) return;
  ::cuda::atomic_ref<uint64_t, ::cuda::thread_scope_system>(*letter.ready)
      .store(letter.ticket, ::cuda::memory_order_release);
}

}  // namespace gnnbench::cuda
