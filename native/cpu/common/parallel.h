// Work sharing for CPU kernels. Kernels do not depend on torch: bindings/cpu/parallel.cpp runs the
// workers on torch's threads (a second OpenMP runtime would compete with them), the host-only tests
// on std::thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gnnbench {

// Number of threads that a parallel region can use (torch.get_num_threads()).
int64_t num_threads();

// Calls fn(ctx, w) once for every w in [0, workers), concurrently where threads are free. w = 0
// runs on the calling thread.
void run_workers(int64_t workers, void (*fn)(void* ctx, int64_t worker), void* ctx);

// Calls f(chunk, begin, end) for consecutive chunks of [0, n). The chunks depend on n and
// chunk_size only, not on the number of threads. Idle workers take the next chunk, so that a
// descheduled thread does not block the others. f must not throw.
template <class F>
void parallel_chunks(int64_t n, int64_t chunk_size, const F& f) {
  const int64_t chunks = (n + chunk_size - 1) / chunk_size;
  const int64_t workers = std::min(chunks, num_threads());
  if (workers <= 1) {
    for (int64_t c = 0; c < chunks; ++c) {
      f(c, c * chunk_size, std::min(n, (c + 1) * chunk_size));
    }
    return;
  }
  struct Context {
    const F* f;
    int64_t n, chunk_size, chunks;
    std::atomic<int64_t> next;
  } context{&f, n, chunk_size, chunks, {0}};
  run_workers(
      workers,
      [](void* p, int64_t) {
        auto* c = static_cast<Context*>(p);
        for (;;) {
          const int64_t i = c->next.fetch_add(1, std::memory_order_relaxed);
          if (i >= c->chunks) return;
          (*c->f)(i, i * c->chunk_size, std::min(c->n, (i + 1) * c->chunk_size));
        }
      },
      &context);
}

inline int64_t num_chunks(int64_t n, int64_t chunk_size) {
  return (n + chunk_size - 1) / chunk_size;
}

}  // namespace gnnbench
