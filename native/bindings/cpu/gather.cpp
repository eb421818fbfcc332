#include "cpu/features/gather.h"

#include <vector>

#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

void gather_into(const Tensor& table, const Tensor& ids, Tensor& out) {
  const int64_t rows = table.size(0);
  const int64_t row_bytes = row_bytes_of(table);
  const char* from = data<const char>(table);
  char* to = data<char>(out);
  const int64_t n = ids.numel();
  const bool narrow = ids.scalar_type() == ScalarType::Int;
  const int64_t bad = narrow ? gather_rows(from, rows, row_bytes, data<const int32_t>(ids), n, to)
                             : gather_rows(from, rows, row_bytes, data<const int64_t>(ids), n, to);
  if (bad >= 0) {
    const int64_t id = narrow ? data<const int32_t>(ids)[bad] : data<const int64_t>(ids)[bad];
    fail("ids holds ", id, " at position ", bad, ", the table has the rows 0 to ", rows - 1);
  }
}

void check(const Tensor& table, const Tensor& ids) {
  check_table(table, "table");
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  check_cpu(table, "table");
  check_cpu(ids, "ids");
}

Tensor gather_cpu(Tensor table, Tensor ids) {
  check(table, ids);
  std::vector<int64_t> shape(table.sizes().begin(), table.sizes().end());
  shape[0] = ids.numel();
  Tensor out = empty_cpu(shape, table.scalar_type());
  gather_into(table, ids, out);
  return out;
}

void gather_out_cpu(Tensor table, Tensor ids, Tensor out) {
  check(table, ids);
  check_layout(out, "out", table.dim());
  check_dtype(out, "out", table.scalar_type());
  check_cpu(out, "out");
  bool same = out.size(0) == ids.numel();
  for (int64_t d = 1; d < table.dim(); ++d) same = same && out.size(d) == table.size(d);
  if (!same) fail("out must have one row of the table's shape for each of the ids");
  gather_into(table, ids, out);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("gather", TORCH_BOX(&gather_cpu));
  m.impl("gather_out", TORCH_BOX(&gather_out_cpu));
}

}  // namespace gnnbench
