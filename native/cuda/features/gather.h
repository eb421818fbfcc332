// Gather of rows of a table.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// out row i = table row ids[i], rows of row_bytes bytes. An id out of range fails a device assert.
// aligned: each row is read from the start of its first 128-byte line (rows.cuh).
template <class Id>
void gather_rows(Launch launch, const void* table, int64_t num_rows, const Id* ids, int64_t n,
                 int64_t row_bytes, void* out, bool aligned = false);

// out row places[i] = table row ids[i], for an `out` of out_rows rows; places are distinct. At most
// `blocks` blocks of 256 threads, 0: as many as there are rows. An id or a place out of range fails
// a device assert.
template <class Id>
void gather_rows_to(Launch launch, const void* table, int64_t num_rows, const Id* ids, int64_t n,
                    int64_t row_bytes, const int32_t* places, int64_t out_rows, void* out,
                    int64_t blocks, bool aligned);

}  // namespace gnnbench::cuda
