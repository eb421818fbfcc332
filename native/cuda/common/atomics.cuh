// Relaxed atomics of device scope: single words that threads of different blocks pass to one
// another, and the faults that they report; what one kernel asks of the caches for the next.
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

// What was there; `wanted` is there now if that was `expected`.
template <class T>
__device__ __forceinline__ T exchange_if(T* at, T expected, T wanted) {
  DeviceAtomic<T>(*at).compare_exchange_strong(expected, wanted, ::cuda::memory_order_relaxed,
                                               ::cuda::memory_order_relaxed);
  return expected;
}

// Asks for a line of the L2 cache that a later kernel reads; waits for nothing.
__device__ __forceinline__ void fetch_ahead(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Faults are or-ed into one word of the batch. Nothing is read back: it costs no register.
template <class Word>
__device__ __forceinline__ void report_fault(Word* faults, Fault fault) {
  DeviceAtomic<Word>(*faults).fetch_or(static_cast<Word>(bits(fault)),
                                       ::cuda::memory_order_relaxed);
}

}  // namespace gnnbench::cuda
