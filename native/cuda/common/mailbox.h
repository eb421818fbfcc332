// Numbers that the device tells the host while work goes on behind them: a kernel writes them into
// mapped, locked memory, then a ticket that the host waits for. See bindings/cuda/mailbox.h.
#pragma once

#include <initializer_list>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Where numbers go. Those who post in parts let *ready become ticket - k, k parts being to come.
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

constexpr int kMostPosted = 3;  // arrays, of one letter

// Posts the arrays' numbers one after the other, once the work before it on the stream is done.
void post(Launch launch, std::initializer_list<Numbers> arrays, Letter letter);

}  // namespace gnnbench::cuda
