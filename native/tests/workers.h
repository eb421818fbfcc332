// Workers of the host-only tests: threads. As in torch, an exception of a worker is rethrown at the
// end.
#pragma once

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu/common/parallel.h"

namespace gnnbench {

int64_t num_threads() { return 4; }

void run_workers(int64_t workers, void (*fn)(void*, int64_t), void* ctx) {
  std::vector<std::thread> threads;
  std::exception_ptr thrown;
  std::mutex one;
  const auto work = [&](int64_t w) {
    try {
      fn(ctx, w);
    } catch (...) {
      const std::lock_guard lock(one);
      thrown = std::current_exception();
    }
  };
  try {
    for (int64_t w = 1; w < workers; ++w) threads.emplace_back(work, w);
  } catch (...) {  // no memory for a thread: join the others first
    const std::lock_guard lock(one);
    thrown = std::current_exception();
  }
  if (workers > 0) work(0);
  for (std::thread& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace gnnbench
