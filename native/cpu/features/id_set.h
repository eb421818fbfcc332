// Sets of ids on the host (gnnbench/id_set.h).
//
// The floor: every id read once, and its word's bit set by an atomic of the cache; then every word
// read and written once.
#pragma once

#include "gnnbench/id_set.h"

namespace gnnbench {

// Sets the bits of ids, in `again` those of ids whose bit was there before; `again` may be null.
// Returns the first position whose id is not in [0, num_nodes), or -1.
template <class Id>
int64_t mark_ids(const Id* ids, int64_t n, int64_t num_nodes, uint32_t* seen, uint32_t* again);

// Words of the bits, with what is before each. Returns the number of ids.
int64_t count_ids(const uint32_t* bits, int64_t num_words, IdWord* words);

// The set's ids, ascending.
template <class Id>
void list_ids(const IdWord* words, int64_t num_words, Id* ids);

// Places of ids, -1 of those that are not in the set.
template <class Id>
void places_of(const IdWord* words, int64_t num_words, const Id* ids, int64_t n, int64_t* places);

// A one for each of a batch's ids that has a place in `ones`; zeros are left as they are.
template <class Id>
void fill_ones(const IdWord* words, int64_t num_words, const Id* ids, int64_t n, int64_t batch,
               const Ones& ones);

}  // namespace gnnbench
