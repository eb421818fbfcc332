// Cached rows of a batch, copied on the device. Keys list the misses for a later read.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// One entry per node: the slot of its row in the cache, valid if its generation is the current one.
// Nothing is cleared between batches.
struct Lookup {
  int32_t* slots;
  int32_t* generations;
  int32_t generation;
  bool remember;  // record each id's place in this batch under the next generation
};

// out row i = cached row of ids[i] on a hit. Otherwise keys[i] = ids[i], i (page_order.h); kNowhere
// on a hit. hits [1] is increased by the number of hits. remember: the ids must be distinct. A slot
// outside the cached rows fails a device assert.
template <class Id>
void gather_kept(Launch launch, const void* kept, int64_t num_kept, const Lookup& lookup,
                 const Id* ids, int64_t n, int64_t num_nodes, int64_t row_bytes, uint64_t* keys,
                 int64_t* hits, void* out);

}  // namespace gnnbench::cuda
