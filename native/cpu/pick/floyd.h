// Floyd's picks of eight rows at once, a row to a vector lane.
//
// Words 4 b to 4 b + 3 of eight rows come out of the generator as four vectors, which is how they
// are used: no word is moved, and the comparisons of pick_floyd go over eight rows at a time, with
// AVX-512 over two draws of them, about a tenth of the scalar instructions or a twentieth. The same
// positions in the same order as pick_floyd.
#pragma once

#include <cstdint>

#include "gnnbench/pick.h"

namespace gnnbench {

constexpr int64_t kFloydRows = 8;

enum class FloydBy { kScalar, kAvx2, kAvx512 };

// Whether this machine can draw so many, and the widest that it can.
bool can_draw(FloydBy by, uint32_t fanout);
FloydBy widest_floyd(uint32_t fanout);

// For n rows, a multiple of kFloydRows: out[kFloydRows * (g * fanout + s) + r] is draw s of row
// kFloydRows * g + r. A row's vertex is high << 32 | low. Every degree is above draws.fanout;
// places that are not wanted take any such row.
void floyd_rows(const HopDraws& draws, int64_t n, const uint32_t* low, const uint32_t* high,
                const uint32_t* degree, uint32_t* out, FloydBy by);

}  // namespace gnnbench
