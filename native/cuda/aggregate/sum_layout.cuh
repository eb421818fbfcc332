// How a row of a sum is distributed over the lanes of a group: as packs (pack.cuh).
#pragma once

#include "cuda/aggregate/pack.cuh"
#include "cuda/aggregate/row_sums.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Where an edge's weight comes from.
enum class Weighing { kNone, kEdge, kHead };

// The log2 of a group's lanes, 8 to 32, for rows of `packs`.
inline int group_lanes_log2(int64_t packs) {
  int found = 3;
  while (found < 5 && (int64_t{1} << found) < packs) ++found;
  return found;
}

// Calls f<weighing>() according to the sums.
template <class T, class F>
void by_weighing(const RowSums<T>& sums, const F& f) {
  const bool divides = sums.block_indptr != nullptr && sums.mode != Aggregate::kSum;
  if (sums.heads > 1) {
    f.template operator()<Weighing::kHead>();
  } else if (sums.weights != nullptr || divides) {
    f.template operator()<Weighing::kEdge>();
  } else {
    f.template operator()<Weighing::kNone>();
  }
}

// Calls f<width of a pack, packs per lane, weighing>() according to the sums' layout. A lane has
// `kMost` packs if a row has more packs than twice a warp's lanes. Packs narrower than 16 bytes are
// excluded: with five of them loads waited for each other (602 columns: 1.50 ms, with two 1.26 ms).
template <int kMost, class T, class F>
void by_layout(const RowSums<T>& sums, const F& f) {
  by_weighing(sums, [&]<Weighing kWeighing>() {
    const auto of_width = [&]<int kWidth>() {
      constexpr bool kWhole = kWidth * sizeof(T) == 16;
      const int64_t packs = sums.dim / kWidth;
      if (packs <= 32 && kWhole) {
        f.template operator()<kWidth, 1, kWeighing>();
      } else if (!kWhole || packs <= 64) {
        f.template operator()<kWidth, 2, kWeighing>();
      } else {
        f.template operator()<kWidth, kMost, kWeighing>();
      }
    };
    // A pack must lie within one head.
    const int bytes = pack_bytes<T>(sums.x, sums.out, sums.dim / sums.heads);
    constexpr int kSize = sizeof(T);
    if (bytes == 16) {
      of_width.template operator()<16 / kSize>();
    } else if (bytes == 8) {
      of_width.template operator()<8 / kSize>();
    } else if constexpr (kSize <= 4) {
      if (bytes == 4) {
        of_width.template operator()<4 / kSize>();
      } else if constexpr (kSize == 2) {
        of_width.template operator()<1>();
      }
    }
  });
}

}  // namespace gnnbench::cuda
