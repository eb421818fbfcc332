// The one way in which sizes and faults come back from the device: numbers written by a kernel into
// mapped, locked memory, and a ticket behind them for which the host spins. Neither the work behind
// that kernel is waited for nor a copy enqueued.
#pragma once

#include <vector>

#include "bindings/cuda/common.h"
#include "cuda/common/mailbox.h"

namespace gnnbench::cuda {

// Of one thread and one device, for one letter at a time.
class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox();

  static Mailbox& of(const OnDevice& on);

  // Where `n` numbers are to be posted.
  Letter open(const Launch& launch, int64_t n);

  // Host synchronisation: waits for the numbers, which hold until the next open(). Throws where the
  // stream ends without them.
  const int64_t* wait(const Launch& launch);

 private:
  uint64_t* memory_ = nullptr;  // the ticket of the numbers that are there, then the numbers
  int64_t room_ = 0;
  uint64_t ticket_ = 0;
  bool unanswered_ = false;
  std::vector<uint64_t*> left_;  // of letters that nobody waited for: their kernels may still write
};

// Posts the numbers and waits for them.
const int64_t* read_numbers(const OnDevice& on, Numbers numbers);

}  // namespace gnnbench::cuda
