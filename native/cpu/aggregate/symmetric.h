// Weights of a block's edges by the degrees of both ends (Kipf and Welling, ICLR 2017, Eq. 2).
//
// It reads the ids twice and writes a weight, 12 bytes an edge, the lower bound; and counts, 4
// bytes a source, which stay in a cache where they fit.
#pragma once

#include "cpu/aggregate/block.h"

namespace gnnbench {

// out [num_edges] = 1 / sqrt(edges that begin at the source * edges that end at the destination).
// counts [num_src] is scratch.
void symmetric_weights(const BlockView& block, int64_t num_src, int32_t* counts, float* out);

}  // namespace gnnbench
