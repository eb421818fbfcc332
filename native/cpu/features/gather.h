// Rows of a table by id: the host gather.
//
// Lower bound: each row is read once and written once, row_bytes * n each way, plus the ids. A
// cached store reads its line first, a third transfer; a non-temporal store does not. Cached rows
// lie in the same memory: they cost as much as other rows, plus two lookups.
#pragma once

#include <cstdint>

#include "cpu/features/stream.h"

namespace gnnbench {

// out[i] = table[ids[i]]; rows of row_bytes bytes. Returns the first position whose id is not in
// [0, rows), or -1. If there is one, out is undefined.
template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out, Stores stores);

// The same with the best kind of store for n rows.
template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out) {
  return gather_rows(table, rows, row_bytes, ids, n, out, best_stores(n, row_bytes));
}

// out row places[i] = table[ids[i]], for an `out` of out_rows rows. Each place is written once if
// places are distinct. Returns the first position whose id or place is invalid, or -1; then rows of
// other positions may be written.
template <class Id>
int64_t gather_rows_to(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                       const int32_t* places, int64_t out_rows, char* out);

// `count` rows cached by earlier batches: row slots[id] belongs to an id whose generation is the
// current one. slots and generations have one entry per row of the table.
struct Kept {
  const char* rows;
  int64_t count;
  int32_t* slots;
  int32_t* generations;
  int32_t generation;
  bool remember;  // record each id's place under the next generation; ids must be distinct
};

// The same, with cached rows read from the cache and the others from the table. Adds the number of
// cached rows to `hits`.
template <class Id>
int64_t gather_rows_over(const char* table, int64_t rows, int64_t row_bytes, const Kept& kept,
                         const Id* ids, int64_t n, char* out, int64_t* hits, Stores stores);

}  // namespace gnnbench
