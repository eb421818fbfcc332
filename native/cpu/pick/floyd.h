// Floyd's picks of eight rows at once, one row per vector lane.
//
// The generator returns words 4 b to 4 b + 3 of eight rows as four vectors, in the layout in which
// they are used. The comparisons of pick_floyd process eight rows at a time, with AVX-512 two draws
// of each: about a tenth or a twentieth of the scalar instructions. Positions and their order equal
// those of pick_floyd.
#pragma once

#include <cstdint>

#include "gnnbench/pick.h"

namespace gnnbench {

constexpr int64_t kFloydRows = 8;

enum class FloydBy { kScalar, kAvx2, kAvx512 };

// Whether this machine supports the method for a fanout, and the widest supported method.
bool can_draw(FloydBy by, uint32_t fanout);
FloydBy widest_floyd(uint32_t fanout);

// For n rows, a multiple of kFloydRows: out[kFloydRows * (g * fanout + s) + r] is draw s of row
// kFloydRows * g + r. A row's vertex is high << 32 | low. Every degree exceeds draws.fanout; unused
// places can repeat any such row.
void floyd_rows(const HopDraws& draws, int64_t n, const uint32_t* low, const uint32_t* high,
                const uint32_t* degree, uint32_t* out, FloydBy by);

}  // namespace gnnbench
