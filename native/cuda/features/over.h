// Rows of a batch out of rows that are kept on the device; the others are left to be read.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// One entry a node: the slot of its row among the kept ones, known where its generation is the
// present one. Nothing is cleared from batch to batch.
struct Lookup {
  int32_t* slots;
  int32_t* generations;
  int32_t generation;
  bool remember;  // leave each id its place in this batch, under the next generation
};

// out row i = kept row of ids[i] where it is known, else keys[i] = ids[i], i (page_order.h), and
// kNowhere of the known ones. hits [1] is raised by their number. remember: the ids are distinct. A
// slot that is none of the kept rows fails a device assert.
template <class Id>
void gather_kept(Launch launch, const void* kept, int64_t num_kept, const Lookup& lookup,
                 const Id* ids, int64_t n, int64_t num_nodes, int64_t row_bytes, uint64_t* keys,
                 int64_t* hits, void* out);

}  // namespace gnnbench::cuda
