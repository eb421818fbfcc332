// Notifications from the device to the host while later work runs: a kernel writes numbers into
// mapped pinned memory, then a sequence number that the host polls. See
// bindings/cuda/notification.h.
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// The destination of the numbers; *ready becomes `sequence` once they are written.
struct Notification {
  int64_t* numbers;
  uint64_t* ready;  // null: no poll, and the numbers may be in device memory
  uint64_t sequence;
};

// Numbers on the device, of 4 or 8 bytes each.
struct Numbers {
  Numbers(const int32_t* from, int n) : at(from), count(n), wide(false) {}
  Numbers(const int64_t* from, int n) : at(from), count(n), wide(true) {}

  const void* at;
  int count;
  bool wide;
};

// Posts the numbers after the earlier work on the stream.
void post(Launch launch, Numbers numbers, Notification notification);

}  // namespace gnnbench::cuda
