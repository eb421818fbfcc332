// Lookup of keys in a dense map, with a list of the unknown keys.
#pragma once

#include <cstdint>

namespace gnnbench {

constexpr int64_t kLookUpWide = 16;   // keys looked up at once
constexpr int64_t kLookUpAhead = 48;  // keys between a prefetch and its use
constexpr int32_t kUnclaimed = -1;

// out[e] = map[keys[e]], while other threads can claim entries. `unknown` lists, in order, each e
// whose entry is kUnclaimed; it has space for n + kLookUpWide. Returns how many there are. kOwn:
// lines are prefetched for writing.
template <class Id>
int64_t look_up(const int32_t* map, const Id* keys, int64_t n, int32_t* out, int32_t* unknown,
                bool to_own);

}  // namespace gnnbench
