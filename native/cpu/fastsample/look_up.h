// Keys looked up in a dense map, those unknown to it listed.
#pragma once

#include <cstdint>

namespace gnnbench {

constexpr int64_t kLookUpWide = 16;   // keys looked up at once
constexpr int64_t kLookUpAhead = 48;  // keys between a prefetch and its use
constexpr int32_t kUnclaimed = -1;

// out[e] = map[keys[e]], while others may claim entries; unknown lists, in order, the e of those
// that are kUnclaimed and has room for n + kLookUpWide. Returns how many. To own: lines are asked
// for as if all of them were to be written to.
template <class Id>
int64_t look_up(const int32_t* map, const Id* keys, int64_t n, int32_t* out, int32_t* unknown,
                bool to_own);

}  // namespace gnnbench
