// Sets of ids on the device (gnnbench/id_set.h): the union of batches in ascending order, without a
// sort and without a table of 8 bytes a node.
//
// Floors, for a union of 8 batches of 1.26 M ids out of 134 M on an H200. Bits: 17 MB cleared,
// 10 M atomics on them, which stay in the second-level cache, one scan of 4.2 M words (70 MB read
// or written), and the ids: some 0.3 ms. The versioned look-up (kernels/lookup.py): 10 M random
// atomics on 1 GB, bound by DRAM's sectors (0.3 to 0.5 ms), and a radix sort of the 5.4 M ids of
// the union by page (0.2 ms), since they come in no order. Bits it is: fewer bytes, ascending, and
// each id's place is found again by one cached read. Either is 1 % of the 58 ms that the union's
// rows take over the link; copying the batches' rows out of the union takes 10 GB of DRAM, some 3
// ms.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/id_set.h"

namespace gnnbench::cuda {

// Sets the bits of ids in `seen`, and in `again` (may be null) those of ids that were there before.
// Both were cleared by the caller. An id out of [0, num_nodes) fails a device assert.
template <class Id>
void mark_ids(Launch launch, const Id* ids, int64_t n, int64_t num_nodes, uint32_t* seen,
              uint32_t* again);

// counts [num_words + 1]: ids of each word, and 0; to be summed (scan.h).
void count_ids(Launch launch, const uint32_t* bits, int64_t num_words, int32_t* counts);

// words and ids of the set; before [num_words]: the ids before each word.
template <class Id>
void finish_set(Launch launch, const uint32_t* bits, const int32_t* before, int64_t num_words,
                IdWord* words, Id* ids);

// out row i = rows row (place of ids[i]); an id without a row fails a device assert.
template <class Id>
void gather_of_set(Launch launch, const void* rows, int64_t num_rows, const IdWord* words,
                   int64_t num_words, const Id* ids, int64_t n, int64_t row_bytes, void* out);

// A one for each of a batch's ids that has a place in `ones`; zeros are left as they are.
template <class Id>
void fill_ones(Launch launch, const IdWord* words, int64_t num_words, const Id* ids, int64_t n,
               int64_t batch, const Ones& ones);

}  // namespace gnnbench::cuda
