#include "cuda/features/gather.h"

#include <vector>

#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

void gather_into(const OnDevice& on, const Tensor& table, const Tensor& ids, const Tensor& out) {
  const auto run = [&](const auto* from) {
    gather_rows(on.launch(), table.data_ptr(), table.size(0), from, ids.numel(),
                row_bytes_of(table), out.data_ptr());
  };
  ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                       : run(data<const int64_t>(ids));
}

void check(const Tensor& table, const Tensor& ids) {
  check_table(table, "table");
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  check_cuda({{table, "table"}, {ids, "ids"}});
}

// No synchronisation: an id out of range fails a device assert, as torch's own indexing does.
Tensor gather_cuda(Tensor table, Tensor ids) {
  check(table, ids);
  const OnDevice on(table, "gather");
  std::vector<int64_t> shape(table.sizes().begin(), table.sizes().end());
  shape[0] = ids.numel();
  Tensor out = on.empty(shape, table.scalar_type());
  gather_into(on, table, ids, out);
  return out;
}

void gather_out_cuda(Tensor table, Tensor ids, Tensor out) {
  check(table, ids);
  check_layout(out, "out", table.dim());
  check_dtype(out, "out", table.scalar_type());
  check_cuda({{table, "table"}, {out, "out"}});
  bool same = out.size(0) == ids.numel();
  for (int64_t d = 1; d < table.dim(); ++d) same = same && out.size(d) == table.size(d);
  if (!same) fail("out must have one row of the table's shape for each of the ids");
  check_apart(out, "out", table, "table");
  check_apart(out, "out", ids, "ids");
  gather_into(OnDevice(table, "gather_out"), table, ids, out);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather", TORCH_BOX(&gather_cuda));
  m.impl("gather_out", TORCH_BOX(&gather_out_cuda));
}

}  // namespace gnnbench::cuda
