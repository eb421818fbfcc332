// Rows of a host table in pinned memory, each by a copy of its own.
#include <vector>

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

struct Rows {
  const char* table;
  int64_t num_rows, row_bytes;
  char* out;
};

template <class Id>
void check_range(const Rows& rows, const Id* ids, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= rows.num_rows) {
      fail("ids holds ", ids[i], " at position ", i, ", the table has the rows 0 to ",
           rows.num_rows - 1);
    }
  }
}

template <class Id>
void copy_one_by_one(const Launch& launch, const Rows& rows, const Id* ids, int64_t n) {
  const int64_t bytes = rows.row_bytes;
  for (int64_t i = 0; i < n; ++i) {
    GNNBENCH_CUDA_CALL(launch, cudaMemcpyAsync(rows.out + i * bytes, rows.table + ids[i] * bytes,
                                               bytes, cudaMemcpyHostToDevice, launch.stream));
  }
}

// One call for all rows. It refuses the legacy default stream. The default stream of the thread
// waits for that one, and that one for it.
template <class Id>
void copy_together(const Launch& launch, const Rows& rows, const Id* ids, int64_t n) {
  const auto count = static_cast<size_t>(n);
  std::vector<void*> to(count);
  std::vector<const void*> from(count);
  const std::vector<size_t> sizes(count, static_cast<size_t>(rows.row_bytes));
  for (size_t i = 0; i < count; ++i) {
    to[i] = rows.out + static_cast<int64_t>(i) * rows.row_bytes;
    from[i] = rows.table + ids[i] * rows.row_bytes;
  }
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;  // the attributes are those of all copies
  const cudaStream_t stream = launch.stream == nullptr ? cudaStreamPerThread : launch.stream;
  GNNBENCH_CUDA_CALL(launch, cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), count,
                                                  &attributes, &first, 1, stream));
}

// All ids are checked before the first copy starts.
template <class Id>
void copy_rows(const Launch& launch, const Rows& rows, const Id* ids, int64_t n, bool together) {
  check_range(rows, ids, n);
  if (n == 0 || rows.row_bytes == 0) return;
  if (together) {
    copy_together(launch, rows, ids, n);
  } else {
    copy_one_by_one(launch, rows, ids, n);
  }
}

void gather_by_copies_cuda(Tensor table, Tensor ids, Tensor out, bool together) {
  check_rows(table, ids, out);
  const OnDevice on(out, "gather_by_copies");
  on.pointer<char>(table, "table");  // copies from unlocked memory would wait for each other
  const Rows rows{data<const char>(table), table.size(0), row_bytes_of(table), data<char>(out)};
  const int64_t n = ids.numel();
  if (ids.scalar_type() == ScalarType::Int) {
    copy_rows(on.launch(), rows, data<const int32_t>(ids), n, together);
  } else {
    copy_rows(on.launch(), rows, data<const int64_t>(ids), n, together);
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather_by_copies", TORCH_BOX(&gather_by_copies_cuda));
}

}  // namespace gnnbench::cuda
