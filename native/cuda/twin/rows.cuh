// The nested ranges around a row, shared by the passes of the twin generator.
#pragma once

#include "cuda/twin/find.cuh"
#include "cuda/twin/twin.h"

namespace gnnbench::cuda {

// The row itself, its community, its region, all positions.
struct RowBounds {
  uint32_t at[twin::kLevels + 1][2];

  __device__ RowBounds(const TwinRows& rows, int64_t position) {
    const int64_t c = rows.community_of[position];
    const int64_t r = range_of(rows.region_ptr, rows.regions, c);
    const int64_t* ptr = rows.community_ptr;
    at[0][0] = static_cast<uint32_t>(position);
    at[0][1] = static_cast<uint32_t>(position + 1);
    at[1][0] = static_cast<uint32_t>(ptr[c]);
    at[1][1] = static_cast<uint32_t>(ptr[c + 1]);
    at[2][0] = static_cast<uint32_t>(ptr[rows.region_ptr[r]]);
    at[2][1] = static_cast<uint32_t>(ptr[rows.region_ptr[r + 1]]);
    at[3][0] = 0;
    at[3][1] = static_cast<uint32_t>(rows.n);
  }
};

}  // namespace gnnbench::cuda
