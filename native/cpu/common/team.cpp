#include "cpu/common/team.h"

#include <chrono>
#include <thread>
#include <utility>

namespace gnnbench {
namespace {

constexpr int kBits = 20;
constexpr uint64_t kMost = (uint64_t{1} << kBits) - 1;  // workers of a step
constexpr uint64_t kDismissed = ~uint64_t{0};
// How long a thread spins: longer than the leader's serial work between two steps, shorter than
// sleeping plus waking. After kRests pauses it yields each time, because the awaited thread may
// need this core.
constexpr std::chrono::microseconds kAwake{50};
constexpr int kRests = 64;

thread_local Team* led = nullptr;

uint64_t claimed_of(uint64_t word) { return word & kMost; }
uint64_t workers_of(uint64_t word) { return word >> kBits & kMost; }

void rest(int times) {
  if (times > kRests) return std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until the word is no longer `old` and returns it.
template <class T>
T changed(const std::atomic<T>& word, T old) {
  const auto until = std::chrono::steady_clock::now() + kAwake;
  for (int times = 0; std::chrono::steady_clock::now() < until; rest(++times)) {
    if (const T now = word.load(std::memory_order_acquire); now != old) return now;
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

}  // namespace

Team* Team::of_thread() { return led; }

Team::Led::Led(Team& team) : team(team) { led = &team; }

Team::Led::~Led() {
  led = nullptr;
  team.word_.store(kDismissed, std::memory_order_release);
  team.word_.notify_all();
}

void Team::work(uint64_t claimed) {
  const uint64_t workers = workers_of(claimed);
  try {
    fn_(ctx_, static_cast<int64_t>(claimed_of(claimed)));
  } catch (...) {
    if (!threw_.exchange(true)) thrown_ = std::current_exception();
  }
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers) done_.notify_one();
}

void Team::run(int64_t workers, void (*fn)(void*, int64_t), void* ctx) {
  fn_ = fn;
  ctx_ = ctx;
  threw_ = false;
  thrown_ = nullptr;
  done_.store(0, std::memory_order_relaxed);
  const auto all = static_cast<uint32_t>(workers);
  uint64_t word = (++step_ << 2 * kBits) | uint64_t{all} << kBits;
  word_.store(word, std::memory_order_release);
  word_.notify_all();
  led = nullptr;  // a nested step uses no team
  while (claimed_of(word) < all) {
    if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel)) work(word++);
  }
  for (uint32_t done; (done = done_.load(std::memory_order_acquire)) < all;) changed(done_, done);
  led = this;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Team::help() {
  uint64_t word = word_.load(std::memory_order_acquire);
  while (word != kDismissed) {
    if (claimed_of(word) == workers_of(word)) {
      word = changed(word_, word);
    } else if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel)) {
      work(word++);
    }
  }
}

}  // namespace gnnbench
