// How a destination's neighbours become one row: their sum, their mean, or their sum with the
// destination itself by 1 / (degree + 1), as GCN's layers of DGL's GraphSAGE do.
#pragma once

namespace gnnbench {

enum class Aggregate : int { kSum = 0, kMean = 1, kGcn = 2 };

}  // namespace gnnbench
