// The first fault or exception that a worker of a pass reported.
#pragma once

#include <atomic>
#include <exception>

#include "gnnbench/fault.h"

namespace gnnbench {

class FaultBox {
 public:
  void report(FaultAt fault) {
    if (!reported_.exchange(true)) fault_ = fault;
  }
  void report(Fault fault, int64_t node = -1) { report(FaultAt{fault, node}); }

  // Call this while an exception is handled.
  void report_exception() noexcept {
    if (!reported_.exchange(true)) thrown_ = std::current_exception();
  }

  // Whether a fault or an exception was reported, so that further work is useless.
  bool any() const { return reported_.load(std::memory_order_relaxed); }

  // Call this once all workers are done. Rethrows the exception of a worker.
  FaultAt get() const {
    if (thrown_) std::rethrow_exception(thrown_);
    return fault_;
  }

 private:
  std::atomic<bool> reported_{false};
  FaultAt fault_;
  std::exception_ptr thrown_;
};

}  // namespace gnnbench
