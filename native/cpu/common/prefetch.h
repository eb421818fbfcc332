// Entries of id maps, asked for before they are used.
#pragma once

#include "cpu/common/parallel.h"

namespace gnnbench {

// Asks for a line that another worker may hold, to write to it. The instruction is not in the
// compilers' least x86-64, and nothing where a processor does not know it.
inline void prefetch_to_own(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Whether entries that may turn out to be written to are asked for in that way. A line that is read
// and then claimed comes from the other core twice, which is most of what claims cost two workers.
// With many, lines of nodes that all of them know already would never stay anywhere.
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
