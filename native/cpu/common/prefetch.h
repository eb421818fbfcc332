// Prefetching of id map entries.
#pragma once

#include "cpu/common/parallel.h"

namespace gnnbench {

// Prefetches a line for writing that another core may hold. prefetchw is not in the compilers'
// baseline x86-64; a processor without it executes a no-op.
inline void prefetch_to_own(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Whether entries that may be written are prefetched for writing. A line that is read and then
// claimed is otherwise transferred from the other core twice, which is most of the cost of claims
// with two workers. With many workers, the lines of already known nodes would move between cores
// all the time.
inline bool owns_lines() {
  constexpr int64_t kFewWorkers = 4;
  return num_threads() <= kFewWorkers;
}

inline void prefetch_entry(const void* entry, bool to_own) {
  if (to_own) {
    prefetch_to_own(entry);
  } else {
    __builtin_prefetch(entry);
  }
}

}  // namespace gnnbench
