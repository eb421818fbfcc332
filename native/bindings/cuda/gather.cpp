#include "cuda/features/gather.h"

#include <vector>

#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

// `rows` is the table's address for the device.
void gather_into(const OnDevice& on, const void* rows, const Tensor& table, const Tensor& ids,
                 const Tensor& out) {
  int64_t row_bytes = static_cast<int64_t>(table.element_size());
  for (int64_t d = 1; d < table.dim(); ++d) row_bytes *= table.size(d);
  const auto run = [&](const auto* from) {
    gather_rows(on.launch(), rows, table.size(0), from, ids.numel(), row_bytes, out.data_ptr());
  };
  ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                       : run(data<const int64_t>(ids));
}

void check(const Tensor& table, const Tensor& ids) {
  if (table.dim() < 1) fail("table must have at least 1 dimension, it has 0");
  check_layout(table, "table", table.dim());
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
  gather_into(on, table.data_ptr(), table, ids, out);
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
  gather_into(OnDevice(table, "gather_out"), table.data_ptr(), table, ids, out);
}

Tensor gather_zero_copy_cuda(Tensor table, Tensor ids) {
  if (table.dim() < 1) fail("table must have at least 1 dimension, it has 0");
  check_layout(table, "table", table.dim());
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  check_cuda({{ids, "ids"}});
  if (!table.is_cpu()) fail("table must be on the CPU, in locked memory");
  const OnDevice on(ids, "gather_zero_copy");
  const void* from = on.pointer<char>(table, "table");
  std::vector<int64_t> shape(table.sizes().begin(), table.sizes().end());
  shape[0] = ids.numel();
  Tensor out = on.empty(shape, table.scalar_type());
  gather_into(on, from, table, ids, out);
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather", TORCH_BOX(&gather_cuda));
  m.impl("gather_out", TORCH_BOX(&gather_out_cuda));
  m.impl("gather_zero_copy", TORCH_BOX(&gather_zero_copy_cuda));
}

}  // namespace gnnbench::cuda
