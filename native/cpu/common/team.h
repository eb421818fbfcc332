// Threads that stay awake for several parallel steps of one call.
//
// A step that wakes its threads pays for that each time, and one whose leader waits for threads
// that are still being woken pays for it in full; a batch has seven steps of some 100 us. A team's
// threads are woken once. A step begins when its leader says so, with whoever is awake:
//
//   leader   | step 1 ....... | alone | step 2 .... | alone | dismisses
//   helper     (woken) | step 1 . | waits, awake | step 2 | ...
//
// A worker is claimed by adding one to a word that also tells the step, so that nobody can claim
// one of a step that is over, and what the step runs stays until all that were claimed are done:
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
  // What the calling thread leads, outside a step; else null.
  static Team* of_thread();

  // `size` threads are expected, the leader included.
  explicit Team(int64_t size) : size_(size) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int64_t size() const { return size_; }

  // Calls body(), whose steps are the team's, then dismisses the helpers.
  template <class F>
  void lead(const F& body) {
    const Led here(*this);
    body();
  }

  // A helper's whole life: takes part in steps until the team is dismissed.
  void help();

  // A step. Calls fn(ctx, w) once for every w in [0, workers), on the leader and on the helpers
  // there are; the first exception thrown is thrown again once all are done.
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

// Calls body() on the calling thread, with a team for its steps where there are threads for one.
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
        } catch (...) {  // past torch's workers, which would make another one of it
          c->thrown = std::current_exception();
        }
      },
      &context);
  if (context.thrown) std::rethrow_exception(context.thrown);
}

}  // namespace gnnbench
