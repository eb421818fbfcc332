// Sets of ids on the host (gnnbench/id_set.h).
//
// Lower bound: each id is read once and its word's bit set by an atomic in the cache. Then each
// word is read and written once.
#pragma once

#include "gnnbench/id_set.h"

namespace gnnbench {

// Sets the bits of ids. `again`, unless null, gets the bits of ids whose bit was already set.
// Returns the first position whose id is not in [0, num_nodes), or -1.
template <class Id>
int64_t mark_ids(const Id* ids, int64_t n, int64_t num_nodes, uint32_t* seen, uint32_t* again);

// Builds words from the bits, with the rank before each. Returns the number of ids.
int64_t count_ids(const uint32_t* bits, int64_t num_words, IdWord* words);

// The set's ids, ascending.
template <class Id>
void list_ids(const IdWord* words, int64_t num_words, Id* ids);

// Ranks of ids, or -1 for ids that the set does not contain.
template <class Id>
void places_of(const IdWord* words, int64_t num_words, const Id* ids, int64_t n, int64_t* places);

// Writes 1 for each of a batch's ids that has a place in `ones`. Does not write zeros.
template <class Id>
void fill_ones(const IdWord* words, int64_t num_words, const Id* ids, int64_t n, int64_t batch,
               const Ones& ones);

}  // namespace gnnbench
