// The graph that every sampler reads: compressed sparse columns (CSC) of in-neighbours. Samplers
// validate rows through these methods only.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

struct CscRow {
  int64_t begin;    // offset in indices
  uint32_t degree;  // number of entries
};

// Id is int32_t or int64_t.
template <class Id>
struct Csc {
  const int64_t* indptr;  // [num_nodes + 1]
  const Id* indices;      // [num_edges]
  int64_t num_nodes;
  int64_t num_edges;

  GNNBENCH_HD bool has_node(int64_t id) const {
    return static_cast<uint64_t>(id) < static_cast<uint64_t>(num_nodes);
  }

  // Reads the row of a node. Returns false and leaves `row` unchanged where its offsets decrease,
  // point outside indices, or span more entries than a draw can address.
  GNNBENCH_HD bool read_row(int64_t node, CscRow& row) const {
    const int64_t begin = indptr[node], end = indptr[node + 1];
    if (begin < 0 || end < begin || end > num_edges || end - begin > int64_t{UINT32_MAX}) {
      return false;
    }
    row = CscRow{begin, static_cast<uint32_t>(end - begin)};
    return true;
  }

  // The row of a node that read_row accepted.
  GNNBENCH_HD CscRow valid_row(int64_t node) const {
    const int64_t begin = indptr[node];
    return CscRow{begin, static_cast<uint32_t>(indptr[node + 1] - begin)};
  }
};

}  // namespace gnnbench
