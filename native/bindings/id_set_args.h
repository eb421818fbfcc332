// Arguments of the operators on sets of ids, for both devices.
#pragma once

#include "bindings/checks.h"
#include "gnnbench/id_set.h"

namespace gnnbench {

constexpr int64_t kMostNodes = int64_t{1} << 40;  // a set of them takes 128 GiB of bits

// Checks that batches of ids have one dtype and device. Returns the total number of ids.
inline int64_t check_batches(const std::vector<Tensor>& batches) {
  if (batches.empty()) fail("batches is empty; give at least one");
  int64_t n = 0;
  for (const Tensor& batch : batches) {
    check_layout(batch, "batches", 1);
    check_ids(batch, "batches");
    check_dtype(batch, "batches", batches[0].scalar_type());
    n += batch.numel();
  }
  if (n > INT32_MAX) fail("batches hold ", n, " ids, at most 2^31 - 1 are supported");
  return n;
}

inline void check_num_nodes(int64_t num_nodes) {
  if (num_nodes < 0 || num_nodes > kMostNodes) {
    fail("num_nodes must be 0 to ", kMostNodes, ", it is ", num_nodes);
  }
}

inline void check_set(const Tensor& set) {
  check_layout(set, "id_set", 2);
  check_dtype(set, "id_set", ScalarType::Int);
  if (set.size(1) != 2) fail("id_set must have 2 columns, it has ", set.size(1));
}

inline void check_rows(const Tensor& rows, const Tensor& set, const Tensor& ids) {
  check_table(rows, "rows");
  check_set(set);
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
}

inline Ones check_ones(const std::vector<Tensor>& batches, const Tensor& set, int64_t first,
                       const Tensor& ones) {
  check_batches(batches);
  check_set(set);
  check_layout(ones, "ones", 3);
  check_dtype(ones, "ones", ScalarType::Half);
  if (first < 0) fail("first must be at least 0, it is ", first);
  if (ones.size(1) != static_cast<int64_t>(batches.size())) {
    fail("ones must have a row for each of the ", batches.size(), " batches, it has ",
         ones.size(1));
  }
  check_apart(ones, "ones", set, "id_set");
  for (const Tensor& batch : batches) check_apart(ones, "ones", batch, "batches");
  return {static_cast<uint16_t*>(ones.data_ptr()), first, ones.size(0), ones.size(1), ones.size(2)};
}

}  // namespace gnnbench
