// Emulates enough of a GPU to run a kernel's logic on the host, for tests on machines without one.
// A block's threads are fibers that run one at a time; blocks run one after the other. A thread
// runs until it waits for others: at a barrier of the block or the warp, or at an exchange between
// lanes. Then a randomly selected thread continues, so that tests reveal schedule-dependent
// results. The program aborts if threads wait for one that has exited. Speed, memory order between
// threads and registers are not emulated.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

namespace on_host {

struct Barrier {
  int waiting = 0, generation = 0;
};

struct Warp {
  std::map<unsigned, Barrier> barriers;  // by mask
  uint64_t values[32][2] = {};
};

struct Thread {
  ucontext_t begin{};  // later `place`: a jump avoids the system call that sets the signal mask
  jmp_buf place;
  bool begun = false;
  std::unique_ptr<char[]> stack;
  dim3 index;
  const Barrier* waits_for = nullptr;  // until its generation changes
  int generation = 0;
  int ors = 0;  // calls of __syncthreads_or
  bool left = false;
};

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barrier;
  int any[2] = {0, 0};
  jmp_buf scheduler;
  int running = 0;
};

inline Block block;
inline dim3 block_index, block_size, grid_size;
inline std::vector<std::max_align_t> dynamic_shared;
inline std::mt19937_64 draws{1};
inline std::function<void()> body;

inline Thread& thread() { return block.threads[static_cast<size_t>(block.running)]; }
inline int linear() { return block.running; }
inline Warp& warp() { return block.warps[static_cast<size_t>(block.running / 32)]; }

inline void wait_at(Barrier& barrier, int expected) {
  if (++barrier.waiting == expected) {
    barrier.waiting = 0;
    ++barrier.generation;
    return;
  }
  Thread& own = thread();
  own.waits_for = &barrier;
  own.generation = barrier.generation;
  if (_setjmp(own.place) == 0) _longjmp(block.scheduler, 1);
}

inline void wait_for_lanes(unsigned mask) {
  if ((mask >> (block.running % 32) & 1u) == 0) {
    std::fprintf(stderr, "a lane is not in its mask\n");
    std::abort();
  }
  wait_at(warp().barriers[mask], std::popcount(mask));
}

inline void enter() {
  body();
  thread().left = true;
  _longjmp(block.scheduler, 1);
}

inline void resume(Thread& next) {
  next.waits_for = nullptr;
  if (_setjmp(block.scheduler) != 0) return;
  if (next.begun) _longjmp(next.place, 1);
  next.begun = true;
  setcontext(&next.begin);
}

inline void run_block() {
  const int count = static_cast<int>(block_size.x * block_size.y * block_size.z);
  if (block.threads.empty()) block.threads.resize(1024);  // moving a context would invalidate it
  block.warps.assign(static_cast<size_t>((count + 31) / 32), {});
  block.barrier = {};
  std::vector<int> able;
  for (int t = 0; t < count; ++t) {
    Thread& thread = block.threads[static_cast<size_t>(t)];
    constexpr size_t kStack = 32 << 10;
    if (!thread.stack) thread.stack.reset(new char[kStack]);
    if (thread.begin.uc_stack.ss_sp == nullptr) getcontext(&thread.begin);
    thread.begin.uc_stack.ss_sp = thread.stack.get();
    thread.begin.uc_stack.ss_size = kStack;
    thread.begin.uc_link = nullptr;
    makecontext(&thread.begin, enter, 0);
    thread.begun = false;
    const auto n = static_cast<unsigned>(t);
    thread.index =
        dim3(n % block_size.x, n / block_size.x % block_size.y, n / block_size.x / block_size.y);
    thread.waits_for = nullptr;
    thread.ors = 0;
    thread.left = false;
  }
  for (;;) {
    able.clear();
    int left = 0;
    for (int t = 0; t < count; ++t) {
      Thread& thread = block.threads[static_cast<size_t>(t)];
      left += thread.left;
      if (thread.left) continue;
      if (thread.waits_for == nullptr || thread.waits_for->generation != thread.generation) {
        able.push_back(t);
      }
    }
    if (left == count) return;
    if (able.empty()) {
      std::fprintf(stderr, "%d threads wait for threads that have exited\n", count - left);
      std::abort();
    }
    std::shuffle(able.begin(), able.end(), draws);
    for (const int t : able) {
      block.running = t;
      resume(thread());
    }
  }
}

template <class Call>
void launch(dim3 grid, dim3 threads, size_t shared_bytes, Call call) {
  const uint64_t number = uint64_t{grid.x} * grid.y * grid.z;
  if (number == 0 || threads.x * threads.y * threads.z > 1024 || grid.y > 65535) {
    std::fprintf(stderr, "no GPU supports this launch\n");
    std::abort();
  }
  grid_size = grid;
  block_size = threads;
  dynamic_shared.assign(shared_bytes / sizeof(std::max_align_t) + 1, {});
  body = call;
  std::vector<uint64_t> order(number);
  for (uint64_t b = 0; b < number; ++b) order[b] = b;
  std::shuffle(order.begin(), order.end(), draws);
  for (const uint64_t b : order) {
    block_index =
        dim3(static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
             static_cast<unsigned>(b / grid.x / grid.y));
    run_block();
  }
}

template <class T>
T exchange(unsigned mask, T value, int from, int width) {
  static_assert(sizeof(T) <= 16);
  const int lane = block.running % 32;
  std::memcpy(warp().values[lane], &value, sizeof(T));
  wait_for_lanes(mask);
  const int source = (lane & ~(width - 1)) | (from & (width - 1));
  T found{};
  if ((mask >> source & 1u) != 0) std::memcpy(&found, warp().values[source], sizeof(T));
  wait_for_lanes(mask);
  return found;
}

}  // namespace on_host

#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)
#define threadIdx (on_host::thread().index)
#define blockIdx (on_host::block_index)
#define blockDim (on_host::block_size)
#define gridDim (on_host::grid_size)

inline void __syncthreads() {
  on_host::wait_at(on_host::block.barrier, static_cast<int>(blockDim.x * blockDim.y * blockDim.z));
}
inline int __syncthreads_or(int predicate) {
  int& any = on_host::block.any[on_host::thread().ors++ % 2];
  any |= predicate;
  __syncthreads();
  const int found = any;
  __syncthreads();
  any = 0;
  return found;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { on_host::wait_for_lanes(mask); }
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return on_host::exchange(mask, value, source, width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int other, int width = 32) {
  return on_host::exchange(mask, value, (on_host::linear() % 32 & (width - 1)) ^ other, width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  on_host::warp().values[on_host::linear() % 32][0] = predicate != 0;
  on_host::wait_for_lanes(mask);
  unsigned found = 0;
  for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    found |= static_cast<unsigned>(on_host::warp().values[lane][0]) << lane;
  }
  on_host::wait_for_lanes(mask);
  return found;
}
inline void __nanosleep(unsigned) {}
inline int __popc(unsigned bits) { return std::popcount(bits); }
template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
void __stcs(T* at, T value) {
  *at = value;
}
inline int __ffs(unsigned bits) { return bits == 0 ? 0 : std::countr_zero(bits) + 1; }
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = was + value;
  return was;
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = was > value ? was : value;
  return was;
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = was < value ? was : value;
  return was;
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = was | value;
  return was;
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T was = *at;
  if (was == expected) *at = value;
  return was;
}
template <class T>
T max(T a, T b) {
  return a > b ? a : b;
}
template <class T>
T min(T a, T b) {
  return a < b ? a : b;
}

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "an error"; }
inline const char* cudaGetErrorName(cudaError_t) { return "an error"; }
inline cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t) {
  std::memset(at, value, bytes);
  return cudaSuccess;
}
