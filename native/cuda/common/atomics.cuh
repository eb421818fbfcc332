// Relaxed atomics of device scope for single words that threads of different blocks exchange, for
// fault reports, and L2 prefetches for a later kernel.
#pragma once

#include <cuda/atomic>

#include "gnnbench/fault.h"

namespace gnnbench::cuda {

template <class T>
using DeviceAtomic = ::cuda::atomic_ref<T, ::cuda::thread_scope_device>;

template <class T>
__device__ __forceinline__ T load_relaxed(T* at) {
  return DeviceAtomic<T>(*at).load(::cuda::memory_order_relaxed);
}

template <class T>
__device__ __forceinline__ void store_relaxed(T* at, T value) {
  DeviceAtomic<T>(*at).store(value, ::cuda::memory_order_relaxed);
}

// Compare-and-swap: stores `wanted` if the word was `expected`. Returns the previous word.
template <class T>
__device__ __forceinline__ T exchange_if(T* at, T expected, T wanted) {
  DeviceAtomic<T>(*at).compare_exchange_strong(expected, wanted, ::cuda::memory_order_relaxed,
                                               ::cuda::memory_order_relaxed);
  return expected;
}

// Prefetches a line into L2 for a later kernel. Does not wait.
__device__ __forceinline__ void fetch_ahead(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Combines faults by a bitwise or in one word per batch. The result is unused, so it costs no
// register.
template <class Word>
__device__ __forceinline__ void report_fault(Word* faults, Fault fault) {
  DeviceAtomic<Word>(*faults).fetch_or(static_cast<Word>(bits(fault)),
                                       ::cuda::memory_order_relaxed);
}

}  // namespace gnnbench::cuda
