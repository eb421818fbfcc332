// Host-only test of threads that stay for several steps: every worker runs once, whoever comes, a
// step waits for nobody who has not come, what is thrown goes to the leader.
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
    expect(!Team::of_thread(), "nobody leads afterwards");
  }
}

void who_sleeps_wakes() {
  Team team(2);
  std::thread helper([&] { team.help(); });
  Counts counts(1);
  team.lead([&] {
    for (int step = 0; step < 20; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than a helper is awake
      team.run(1, Counts::one, &counts);
    }
    // The leader sleeps too: the helper's worker is done long after its own.
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
    expect(begun == 2, "a step ends when all of its workers do");
  });
  helper.join();
  expect(counts.all(20), "who waits asleep is woken for a step");
}

void what_is_thrown() {
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
  helper.join();  // would wait for ever had it not been dismissed
  expect(caught && counts.all(1), "what a worker throws is thrown when all are done");
  expect(again, "a step after that is like any other");
  expect(out && !Team::of_thread(), "what a body throws dismisses the team");
}

// run_workers of workers.h knows no teams, as torch's own within a region: only with_team's part.
void body_on_its_own_thread() {
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
    expect(alone, "a step within a step is nobody's team's");
  });
  expect(here && size == gnnbench::num_threads(), "the caller leads as many as there are threads");
  expect(nested, "a team is not made twice");
  try {
    gnnbench::with_team([] { throw std::runtime_error("of the body"); });
  } catch (const std::runtime_error& error) {
    out = std::string(error.what()) == "of the body";
  }
  expect(out, "what the body throws is thrown as it was");
}

}  // namespace

int main() {
  every_worker_once();
  who_sleeps_wakes();
  what_is_thrown();
  body_on_its_own_thread();
  return failed();
}
