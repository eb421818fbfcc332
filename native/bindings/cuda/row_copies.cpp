// Rows of a host table in pinned memory, each by a copy of its own.
#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

void check_rows(const Tensor& table, const Tensor& ids, const Tensor& out) {
  check_table(table, "table");
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  if (!table.is_cpu()) fail("table must be on the CPU, in pinned memory");
  if (!ids.is_cpu()) fail("ids must be on the CPU, which starts the copies");
  check_cuda({{out, "out"}});
  check_layout(out, "out", table.dim());
  check_dtype(out, "out", table.scalar_type());
  bool same = out.size(0) == ids.numel();
  for (int64_t d = 1; d < table.dim(); ++d) same = same && out.size(d) == table.size(d);
  if (!same) fail("out must have one row of the table's shape for each of the ids");
}

// All ids are checked before the first copy starts.
template <class Id>
void copy_rows(const Launch& launch, const char* table, int64_t num_rows, const Id* ids, int64_t n,
               int64_t row_bytes, char* out) {
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= num_rows) {
      fail("ids holds ", ids[i], " at position ", i, ", the table has the rows 0 to ",
           num_rows - 1);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    GNNBENCH_CUDA_CALL(launch, cudaMemcpyAsync(out + i * row_bytes, table + ids[i] * row_bytes,
                                               row_bytes, cudaMemcpyHostToDevice, launch.stream));
  }
}

void gather_by_copies_cuda(Tensor table, Tensor ids, Tensor out) {
  check_rows(table, ids, out);
  const OnDevice on(out, "gather_by_copies");
  on.pointer<char>(table, "table");  // copies from unlocked memory would wait for each other
  const auto* from = data<const char>(table);
  auto* to = data<char>(out);
  const int64_t n = ids.numel(), rows = table.size(0), bytes = row_bytes_of(table);
  if (ids.scalar_type() == ScalarType::Int) {
    copy_rows(on.launch(), from, rows, data<const int32_t>(ids), n, bytes, to);
  } else {
    copy_rows(on.launch(), from, rows, data<const int64_t>(ids), n, bytes, to);
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather_by_copies", TORCH_BOX(&gather_by_copies_cuda));
}

}  // namespace gnnbench::cuda
