// Threads that stay awake for several parallel steps of one call.
//
// Waking threads for each step costs time, and a leader that waits for threads still waking up pays
// all of it. A batch has seven steps of about 100 us. A team wakes its threads once. The leader
// starts a step with the threads that are awake:
//
//   leader   | step 1 ....... | serial | step 2 .... | serial | dismisses
//   helper     (woken) | step 1 . | spins           | step 2 | ...
//
// A thread claims a worker index by incrementing a word that also contains the step number. So no
// thread can claim an index of a step that is over, and the step's function stays valid until all
// claimed workers are done:
//
//   word     step : 24 | workers : 20 | claimed : 20
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "cpu/common/parallel.h"

namespace gnnbench {

class Team {
 public:
  // The team that the calling thread leads, outside a step; otherwise null.
  static Team* of_thread();

  // `size` is the expected number of threads, including the leader.
  explicit Team(int64_t size) : size_(size) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int64_t size() const { return size_; }

  // Calls body(), whose steps run on the team, then dismisses the helpers.
  template <class F>
  void lead(const F& body) {
    const Led here(*this);
    body();
  }

  // Runs a helper: takes part in steps until the team is dismissed.
  void help();

  // Runs a step: calls fn(ctx, w) once for every w in [0, workers) on the leader and the available
  // helpers. Rethrows the first exception once all are done.
  void run(int64_t workers, void (*fn)(void* ctx, int64_t worker), void* ctx);

 private:
  struct Led {
    explicit Led(Team& team);
    ~Led();
    Team& team;
  };

  void work(uint64_t claimed);

  const int64_t size_;
  void (*fn_)(void*, int64_t) = nullptr;
  void* ctx_ = nullptr;
  uint64_t step_ = 0;
  std::exception_ptr thrown_;
  std::atomic<bool> threw_{false};
  alignas(64) std::atomic<uint64_t> word_{0};
  alignas(64) std::atomic<uint32_t> done_{0};
};

// Calls body() on the calling thread, with a team for its steps if more threads are available.
template <class F>
void with_team(const F& body) {
  const int64_t size = num_threads();
  if (size < 2 || Team::of_thread()) return body();
  struct Context {
    const F* body;
    Team team;
    std::exception_ptr thrown;
  } context{&body, Team(size), nullptr};
  run_workers(
      size,
      [](void* p, int64_t worker) {
        auto* c = static_cast<Context*>(p);
        if (worker > 0) return c->team.help();
        try {
          c->team.lead(*c->body);
        } catch (...) {  // bypasses torch's workers, which would change its type
          c->thrown = std::current_exception();
        }
      },
      &context);
  if (context.thrown) std::rethrow_exception(context.thrown);
}

}  // namespace gnnbench
