// How the neighbours of a destination are reduced to one row. kGcn includes the destination itself
// and scales the sum by 1 / (degree + 1), as the GCN aggregator of DGL's GraphSAGE does.
#pragma once

namespace gnnbench {

enum class Aggregate : int { kSum = 0, kMean = 1, kGcn = 2 };

}  // namespace gnnbench
