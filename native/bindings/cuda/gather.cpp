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

void gather_to_cuda(Tensor table, Tensor ids, Tensor places, Tensor out, int64_t blocks) {
  check_table(table, "table");
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  check_layout(places, "places", 1);
  check_dtype(places, "places", ScalarType::Int);
  check_layout(out, "out", table.dim());
  check_dtype(out, "out", table.scalar_type());
  check_cuda({{ids, "ids"}, {places, "places"}, {out, "out"}});
  if (places.numel() != ids.numel()) fail("places must have one entry for each of the ids");
  bool same = true;
  for (int64_t d = 1; d < table.dim(); ++d) same = same && out.size(d) == table.size(d);
  if (!same) fail("out must have rows of the table's shape");
  check_readers(blocks);
  check_apart(out, "out", table, "table");
  check_apart(out, "out", ids, "ids");
  check_apart(out, "out", places, "places");
  const OnDevice on(ids, "gather_to");
  const void* from = on.pointer<char>(table, "table");
  const auto run = [&](const auto* which) {
    gather_rows_to(on.launch(), from, table.size(0), which, ids.numel(), row_bytes_of(table),
                   data<const int32_t>(places), out.size(0), out.data_ptr(), blocks,
                   table.is_cpu());
  };
  ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                       : run(data<const int64_t>(ids));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather", TORCH_BOX(&gather_cuda));
  m.impl("gather_out", TORCH_BOX(&gather_out_cuda));
  m.impl("gather_to", TORCH_BOX(&gather_to_cuda));
}

}  // namespace gnnbench::cuda
