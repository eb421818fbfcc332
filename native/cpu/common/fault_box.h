// What the workers of a pass found wrong: the fault, or the exception, of the one who told first.
#pragma once

#include <atomic>
#include <exception>

#include "gnnbench/fault.h"

namespace gnnbench {

class FaultBox {
 public:
  void tell(FaultAt fault) {
    if (!told_.exchange(true)) fault_ = fault;
  }
  void tell(Fault fault, int64_t node = -1) { tell(FaultAt{fault, node}); }

  // To be called while an exception is handled.
  void tell_exception() noexcept {
    if (!told_.exchange(true)) thrown_ = std::current_exception();
  }

  // Whether work is in vain.
  bool any() const { return told_.load(std::memory_order_relaxed); }

  // Once all workers are done; throws what a worker did.
  FaultAt get() const {
    if (thrown_) std::rethrow_exception(thrown_);
    return fault_;
  }

 private:
  std::atomic<bool> told_{false};
  FaultAt fault_;
  std::exception_ptr thrown_;
};

}  // namespace gnnbench
