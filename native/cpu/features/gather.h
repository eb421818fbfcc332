// Rows of a table by id: the host gather.
//
// The floor: every row read once and written once, row_bytes * n each way, plus the ids.
#pragma once

#include <cstdint>

namespace gnnbench {

// out[i] = table[ids[i]]; rows of row_bytes bytes. Returns the first position whose id is not in
// [0, rows), or -1. Rows of wrong ids are left alone.
template <class Id>
int64_t gather_rows(const char* table, int64_t rows, int64_t row_bytes, const Id* ids, int64_t n,
                    char* out);

}  // namespace gnnbench
