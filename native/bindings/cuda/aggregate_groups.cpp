#include <tuple>

#include "bindings/cuda/block_args.h"
#include "bindings/cuda/notification.h"
#include "cuda/aggregate/groups.h"

namespace gnnbench::cuda {
namespace {

std::tuple<Tensor, Tensor> neighbor_groups_cuda(Tensor indptr, int64_t group) {
  check_group(group);
  check_int32(indptr, "indptr");
  const int64_t num_rows = indptr.numel() - 1;
  if (num_rows < 0) fail("indptr must hold num_rows + 1 offsets, it is empty");
  check_cuda({{indptr, "indptr"}});
  const OnDevice on(indptr, "neighbor_groups");
  const size_t scan_bytes = count_groups_scan_bytes(on.launch(), num_rows);
  Scratch memory;
  const size_t offsets = memory.add<int32_t>(num_rows + 1);
  const size_t scan = memory.add<char>(static_cast<int64_t>(scan_bytes));
  memory.allocate(on);
  count_groups(on.launch(), data<const int32_t>(indptr), num_rows, group, memory.at<char>(scan),
               scan_bytes, memory.at<int32_t>(offsets));
  // Host synchronisation, one per call: the number of groups determines the output size.
  const int64_t groups = read_numbers(on, {memory.at<int32_t>(offsets) + num_rows, 1})[0];
  Tensor starts = on.empty({groups + 1}, ScalarType::Int);
  Tensor rows = on.empty({groups}, ScalarType::Int);
  write_groups(on.launch(), data<const int32_t>(indptr), memory.at<int32_t>(offsets), num_rows,
               group, data<int32_t>(starts), data<int32_t>(rows));
  return {starts, rows};
}

Tensor aggregate_groups_cuda(Tensor starts, Tensor rows, Tensor indices, Tensor x, int64_t num_rows,
                             int64_t dim_workers) {
  check_sums(x, "x", 2);
  check_dim_workers(dim_workers);
  check_int32(indices, "indices");
  check_int32(rows, "rows");
  check_offsets(starts, "starts", rows.numel(), "groups", indices.numel());
  check_cuda({{x, "x"}, {starts, "starts"}, {rows, "rows"}, {indices, "indices"}});
  check_num_rows(num_rows);
  if (x.size(1) > int64_t{65535} * kGroupColumns) {
    fail("x must have at most ", int64_t{65535} * kGroupColumns, " columns, it has ", x.size(1));
  }
  const OnDevice on(x, "aggregate_groups");
  Tensor out = on.empty({num_rows, x.size(1)}, x.scalar_type());
  by_sum_dtype(x, [&](auto* type) {
    using Real = std::remove_pointer_t<decltype(type)>;
    sum_groups(on.launch(), data<const int32_t>(starts), data<const int32_t>(rows), rows.numel(),
               data<const int32_t>(indices), indices.numel(), data<const Real>(x), x.size(0),
               x.size(1), num_rows, static_cast<int>(dim_workers), data<Real>(out));
  });
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("neighbor_groups", TORCH_BOX(&neighbor_groups_cuda));
  m.impl("aggregate_groups", TORCH_BOX(&aggregate_groups_cuda));
}

}  // namespace gnnbench::cuda
