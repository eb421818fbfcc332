// Rows of a table by id: the host gather.
//
// The floor: every row read once and written once, row_bytes * n each way, plus the ids. A store
// through the caches reads its line first, a third transfer; one past them does not.
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

}  // namespace gnnbench
