// Sets of ids on the device (gnnbench/id_set.h): the union of batches in ascending order, without a
// sort and without a table of 8 bytes per node.
//
// Lower bounds for a union of 8 batches of 1.26 M ids out of 134 M on an H200. Bits: clears 17 MB,
// does 10 M atomics on them, which stay in L2, one scan of 4.2 M words (70 MB read or written), and
// writes the ids: about 0.3 ms. Versioned lookup (kernels/lookup.py): 10 M random atomics on 1 GB,
// bound by DRAM sectors (0.3 to 0.5 ms), and a radix sort of the union's 5.4 M unordered ids by
// page (0.2 ms). Bits move fewer bytes, give ascending ids, and one cached read finds an id's place
// again. Either method takes 1 % of the 58 ms that the union's rows take over the link. Copying the
// batches' rows out of the union takes 10 GB of DRAM traffic, about 3 ms.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/id_set.h"

namespace gnnbench::cuda {

// Sets the bits of ids in `seen` and, unless null, in `again` those of ids that were already set.
// The caller clears both. An id outside [0, num_nodes) fails a device assert.
template <class Id>
void mark_ids(Launch launch, const Id* ids, int64_t n, int64_t num_nodes, uint32_t* seen,
              uint32_t* again);

// counts [num_words + 1]: number of ids of each word, then 0; input of a scan (scan.h).
void count_ids(Launch launch, const uint32_t* bits, int64_t num_words, int32_t* counts);

// Writes words and ids of the set. before [num_words]: the number of ids before each word.
template <class Id>
void finish_set(Launch launch, const uint32_t* bits, const int32_t* before, int64_t num_words,
                IdWord* words, Id* ids);

// out row i = row (place of ids[i]) of `rows`. An id without a row fails a device assert.
template <class Id>
void gather_of_set(Launch launch, const void* rows, int64_t num_rows, const IdWord* words,
                   int64_t num_words, const Id* ids, int64_t n, int64_t row_bytes, void* out);

// Writes 1 for each of a batch's ids that has a place in `ones`. Does not write zeros.
template <class Id>
void fill_ones(Launch launch, const IdWord* words, int64_t num_words, const Id* ids, int64_t n,
               int64_t batch, const Ones& ones);

}  // namespace gnnbench::cuda
