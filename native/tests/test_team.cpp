// Host-only test of thread teams: each worker of a step runs once for any number of helpers, a step
// does not wait for absent helpers, and exceptions reach the leader.
#include <chrono>
#include <stdexcept>
#include <string>

#include "cpu/common/team.h"
#include "expect.h"
#include "workers.h"

namespace {

using gnnbench::Team;
using Clock = std::chrono::steady_clock;

struct Counts {
  std::vector<std::atomic<int>> by_worker;
  explicit Counts(int64_t n) : by_worker(n) {}
  bool all(int times) const {
    for (const auto& n : by_worker) {
      if (n != times) return false;
    }
    return true;
  }
  static void one(void* p, int64_t w) { ++static_cast<Counts*>(p)->by_worker[w]; }
};

void every_worker_once() {
  for (const int helpers : {0, 1, 3}) {
    Team team(helpers + 1);
    std::vector<std::thread> threads;
    for (int h = 0; h < helpers; ++h) threads.emplace_back([&] { team.help(); });
    bool once = true, led = false;
    team.lead([&] {
      led = Team::of_thread() == &team;
      for (int step = 0; step < 20000; ++step) {
        Counts counts(1 + step % 7);
        team.run(1 + step % 7, Counts::one, &counts);
        once &= counts.all(1);
      }
    });
    for (std::thread& thread : threads) thread.join();
    expect(once && led, "every worker of 20000 steps ran once");
    expect(!Team::of_thread(), "no team is active afterwards");
  }
}

void sleeping_threads_wake() {
  Team team(2);
  std::thread helper([&] { team.help(); });
  Counts counts(1);
  team.lead([&] {
    for (int step = 0; step < 20; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than a helper spins
      team.run(1, Counts::one, &counts);
    }
    // The leader sleeps too, because the helper's worker takes longer than its own.
    std::atomic<int> begun{0};
    team.run(
        2,
        [](void* p, int64_t) {
          auto& all = *static_cast<std::atomic<int>*>(p);
          const auto until = Clock::now() + std::chrono::seconds(1);
          if (++all == 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
          while (all < 2 && Clock::now() < until) std::this_thread::yield();
        },
        &begun);
    expect(begun == 2, "a step ends when all of its workers end");
  });
  helper.join();
  expect(counts.all(20), "a sleeping helper wakes for a step");
}

void exceptions() {
  Team team(2);
  std::thread helper([&] { team.help(); });
  Counts counts(8);
  bool caught = false, again = false, out = false;
  try {
    team.lead([&] {
      try {
        team.run(
            8,
            [](void* p, int64_t w) {
              Counts::one(p, w);
              if (w % 2 == 1) throw std::runtime_error("odd");
            },
            &counts);
      } catch (const std::runtime_error&) {
        caught = true;
      }
      Counts after(8);
      team.run(8, Counts::one, &after);
      again = after.all(1);
      throw std::logic_error("of the body");
    });
  } catch (const std::logic_error&) {
    out = true;
  }
  helper.join();  // hangs if the helper is not dismissed
  expect(caught && counts.all(1), "a worker's exception is rethrown when all workers are done");
  expect(again, "the next step works");
  expect(out && !Team::of_thread(), "an exception of the body dismisses the team");
}

// run_workers of workers.h does not use teams, like torch within a parallel region. So this tests
// with_team only.
void body_on_the_calling_thread() {
  const auto caller = std::this_thread::get_id();
  int64_t size = 0;
  bool here = false, nested = false, out = false;
  gnnbench::with_team([&] {
    here = std::this_thread::get_id() == caller;
    Team* const team = Team::of_thread();
    size = team ? team->size() : 0;
    gnnbench::with_team([&] { nested = Team::of_thread() == team; });
    bool alone = true;
    if (team) {
      team->run(1, [](void* p, int64_t) { *static_cast<bool*>(p) = !Team::of_thread(); }, &alone);
    }
    expect(alone, "a nested step has no team");
  });
  expect(here && size == gnnbench::num_threads(), "the caller leads one team of all threads");
  expect(nested, "a nested team is the same team");
  try {
    gnnbench::with_team([] { throw std::runtime_error("of the body"); });
  } catch (const std::runtime_error& error) {
    out = std::string(error.what()) == "of the body";
  }
  expect(out, "the body's exception keeps its type");
}

}  // namespace

int main() {
  every_worker_once();
  sleeping_threads_wake();
  exceptions();
  body_on_the_calling_thread();
  return failed();
}
