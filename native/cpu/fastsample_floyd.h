// Floyd's picks of eight rows at once, a row to a vector lane.
//
// Lane r of block b is words 4 b to 4 b + 3 of row r, so the generator's words are used where they
// come out, in registers, and the comparisons of pick_floyd go over eight rows at a time: about a
// tenth of the scalar instructions. The same positions in the same order as pick_floyd.
#pragma once

#include <cstdint>

#include "gnnbench/pick.h"

namespace gnnbench {

constexpr int64_t kFloydRows = 8;

// out[kFloydRows * s + r] is draw s of row r; its vertex is high[r] << 32 | low[r]. Every degree is
// above draws.fanout; lanes that are not wanted take any such row.
void floyd_rows(const HopDraws& draws, const uint32_t* low, const uint32_t* high,
                const uint32_t* degree, uint32_t* out);

}  // namespace gnnbench
