// Rows of a table by id: the host gather.
//
// The floor: every row read once and written once, row_bytes * n each way, plus the ids. A store
// through the caches reads its line first, a third transfer; one past them does not. Rows that are
// kept lie in the same memory: they cost what others do, and two entries a look-up besides.
#pragma once

#include <cstdint>

#include "cpu/features/stream.h"

namespace gnnbench {

// out[i] = table[ids[i]]; rows of row_bytes bytes. Returns the first position whose id is not in
// [0, rows), or -1; where there is one, what is in out is undefined.
template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out, Stores stores);

// The same, written as is best for n rows.
template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out) {
  return gather_rows(table, rows, row_bytes, ids, n, out, best_stores(n, row_bytes));
}

// Rows that are kept from before, `count` of them: row slots[id] is that of an id whose generation
// is the present one, in tables of an entry for each row of the table.
struct Kept {
  const char* rows;
  int64_t count;
  int32_t* slots;
  int32_t* generations;
  int32_t generation;
  bool remember;  // leave each id its place under the next generation; ids are distinct then
};

// The same out of the rows that are kept, the others out of the table; `hits` grows by the kept.
template <class Id>
int64_t gather_rows_over(const char* table, int64_t rows, int64_t row_bytes, const Kept& kept,
                         const Id* ids, int64_t n, char* out, int64_t* hits, Stores stores);

}  // namespace gnnbench
