// The map of FastSample's operators, an argument.
#pragma once

#include "bindings/cpu/whole_batch.h"

namespace gnnbench {

inline void check_dense_map(const Tensor& dense_map, const BatchTask& task) {
  check_cpu(dense_map, "dense_map");
  check_layout(dense_map, "dense_map", 1);
  check_dtype(dense_map, "dense_map", ScalarType::Int);
  if (dense_map.numel() != task.indptr.numel() - 1) {
    fail("dense_map must have one entry per node, ", task.indptr.numel() - 1, ", it has ",
         dense_map.numel());
  }
  check_apart(dense_map, "dense_map", task.indptr, "indptr");
  check_apart(dense_map, "dense_map", task.indices, "indices");
  check_apart(dense_map, "dense_map", task.seeds, "seeds");
}

}  // namespace gnnbench
