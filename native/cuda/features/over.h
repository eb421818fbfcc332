// Rows of a batch that are on the device, copied there. Keys list the misses for a later read.
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

// `count` rows on the device, and where to find them.
struct KeptRows {
  const void* rows;
  int64_t count;
  Lookup lookup;
};

// out row i = row of ids[i] in the first of the `levels` sources (1 or 2) that has it: the last
// batch's rows and a cache, for example. If none has it, keys[i] = ids[i], i (page_order.h);
// otherwise kNowhere. hits [levels] is increased by the number of rows of each source. Only the
// first may remember, which requires distinct ids. A slot outside the cached rows fails a device
// assert.
template <class Id>
void gather_kept(Launch launch, const KeptRows* kept, int levels, const Id* ids, int64_t n,
                 int64_t num_nodes, int64_t row_bytes, uint64_t* keys, int64_t* hits, void* out);

}  // namespace gnnbench::cuda
