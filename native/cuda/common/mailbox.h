// Numbers that the device tells the host while work goes on behind them: a kernel writes them into
// mapped, locked memory, then a ticket that the host waits for. See bindings/cuda/mailbox.h.
#pragma once

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Where numbers go; *ready becomes the ticket when they are there.
struct Letter {
  int64_t* numbers;
  uint64_t* ready;  // null: nobody waits, and the numbers may go to the device's memory
  uint64_t ticket;
};

// Numbers on the device, of 4 or 8 bytes each.
struct Numbers {
  Numbers(const int32_t* from, int n) : at(from), count(n), wide(false) {}
  Numbers(const int64_t* from, int n) : at(from), count(n), wide(true) {}

  const void* at;
  int count;
  bool wide;
};

// Posts the numbers once the work before it on the stream is done.
void post(Launch launch, Numbers numbers, Letter letter);

}  // namespace gnnbench::cuda
