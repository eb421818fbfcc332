// Returns sizes and faults from the device through mapped pinned memory. A kernel writes the
// numbers and then a sequence number on which the host spins. So the host enqueues no copy and does
// not wait for the work after that kernel.
#pragma once

#include <vector>

#include "bindings/cuda/common.h"
#include "cuda/common/notification.h"

namespace gnnbench::cuda {

// Pinned memory of one thread and one device, for one notification at a time.
class NotificationBuffer {
 public:
  NotificationBuffer() = default;
  NotificationBuffer(const NotificationBuffer&) = delete;
  NotificationBuffer& operator=(const NotificationBuffer&) = delete;
  ~NotificationBuffer();

  static NotificationBuffer& of(const OnDevice& on);

  // Opens a notification of `n` numbers.
  Notification open(const Launch& launch, int64_t n);

  // Host synchronisation: waits for the numbers, which are valid until the next open(). Throws if
  // the stream completes without them.
  const int64_t* wait(const Launch& launch);

 private:
  uint64_t* memory_ = nullptr;  // the sequence number of the last notification, then its numbers
  int64_t capacity_ = 0;
  uint64_t sequence_ = 0;
  bool pending_ = false;
  std::vector<uint64_t*>
      abandoned_;  // notifications without a wait(): their kernels may still write
};

// Posts the numbers and waits for them.
const int64_t* read_numbers(const OnDevice& on, Numbers numbers);

}  // namespace gnnbench::cuda
