// The graph as every sampler reads it, compressed sparse columns of in-neighbours, and the one
// check of what is read from it.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

struct CscRow {
  int64_t begin;    // in indices
  uint32_t degree;  // its entries
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

  // The row of a node. False, and `row` is left alone, where its offsets decrease, lead out of
  // indices, or are further apart than draws can tell.
  GNNBENCH_HD bool read_row(int64_t node, CscRow& row) const {
    const int64_t begin = indptr[node], end = indptr[node + 1];
    if (begin < 0 || end < begin || end > num_edges || end - begin > int64_t{UINT32_MAX}) {
      return false;
    }
    row = CscRow{begin, static_cast<uint32_t>(end - begin)};
    return true;
  }

  // Of a node whose row was found sound before.
  GNNBENCH_HD CscRow sound_row(int64_t node) const {
    const int64_t begin = indptr[node];
    return CscRow{begin, static_cast<uint32_t>(indptr[node + 1] - begin)};
  }
};

}  // namespace gnnbench
