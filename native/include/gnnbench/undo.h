// Runs a rollback at the end of a scope unless disarmed.
#pragma once

#include <utility>

namespace gnnbench {

template <class F>
struct Undo {
  F undo;
  bool armed = true;
  explicit Undo(F f) : undo(std::move(f)) {}
  ~Undo() {
    if (armed) undo();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
};

}  // namespace gnnbench
