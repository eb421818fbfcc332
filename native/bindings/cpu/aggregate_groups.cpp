#include <tuple>

#include "bindings/cpu/block_args.h"
#include "cpu/aggregate/groups.h"

namespace gnnbench {
namespace {

std::tuple<Tensor, Tensor> neighbor_groups_cpu(Tensor indptr, int64_t group) {
  check_group(group);
  const int64_t num_rows = indptr.numel() - 1;
  check_layout(indptr, "indptr", 1);
  check_dtype(indptr, "indptr", ScalarType::Int);
  check_cpu(indptr, "indptr");
  if (num_rows < 0) fail("indptr must hold num_rows + 1 offsets, it is empty");
  const auto* offsets = data<const int32_t>(indptr);
  check_offsets(indptr, "indptr", num_rows, "num_rows", offsets[num_rows]);
  const int64_t groups = count_groups(offsets, num_rows, group);
  Tensor starts = empty_cpu(groups + 1, ScalarType::Int);
  Tensor rows = empty_cpu(groups, ScalarType::Int);
  make_groups(offsets, num_rows, group, data<int32_t>(starts), data<int32_t>(rows));
  return {starts, rows};
}

Tensor aggregate_groups_cpu(Tensor starts, Tensor rows, Tensor indices, Tensor x, int64_t num_rows,
                            int64_t dim_workers) {
  check_sums(x, "x", 2);
  check_cpu(x, "x");
  check_dim_workers(dim_workers);
  check_num_rows(num_rows);
  check_offsets(starts, "starts", rows.numel(), "groups", indices.numel());
  check_local_ids(indices, "indices", x.size(0), "sources");
  check_local_ids(rows, "rows", num_rows, "rows");
  const auto* row = data<const int32_t>(rows);
  for (int64_t g = 1; g < rows.numel(); ++g) {
    if (row[g] < row[g - 1]) fail("rows must ascend; group ", g, " is of an earlier row");
  }
  Tensor out = empty_cpu({num_rows, x.size(1)}, x.scalar_type());
  if (out.numel() == 0) return out;
  by_sum_dtype(x, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    const Scratch<S> carry(product_of_sizes(group_chunks(rows.numel()), x.size(1), "x"));
    sum_groups(GroupSums<S>{data<const int32_t>(starts), row, rows.numel(),
                            data<const int32_t>(indices), data<const S>(x), x.size(1), num_rows,
                            carry.ptr, data<S>(out)});
  });
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("neighbor_groups", TORCH_BOX(&neighbor_groups_cpu));
  m.impl("aggregate_groups", TORCH_BOX(&aggregate_groups_cpu));
}

}  // namespace gnnbench
