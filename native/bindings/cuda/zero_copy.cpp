// Rows of a host table in pinned memory, read by the device of the ids.
#include <vector>

#include "bindings/cuda/common.h"
#include "cuda/features/gather.h"
#include "cuda/features/over.h"
#include "cuda/features/page_order.h"

namespace gnnbench::cuda {
namespace {

constexpr int64_t kAnyPage = 1;                  // rows are read in id order
constexpr int64_t kMostRows = int64_t{1} << 31;  // so that no id is kNowhere

void check(const Tensor& table, const Tensor& ids) {
  check_table(table, "table");
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  check_cuda({{ids, "ids"}});
  if (!table.is_cpu()) fail("table must be on the CPU, in pinned memory");
}

void check_pages(const Tensor& table, int64_t n, int64_t page_bytes, int64_t blocks,
                 int64_t depth) {
  if (table.size(0) > kMostRows) fail("table must have at most 2^31 rows to be read page by page");
  if (n >= kMostRows) fail("ids must be fewer than 2^31 to be read page by page");
  if (page_bytes < 1) fail("page_bytes must be at least 1, it is ", page_bytes);
  if (blocks < 1 || blocks > 65535) fail("blocks must be 1 to 65535, it is ", blocks);
  if (depth != 1 && depth != 2 && depth != 4) {
    fail("depth must be 1, 2 or 4, it is ", depth);
  }
}

Tensor rows_for(const OnDevice& on, const Tensor& table, int64_t n) {
  std::vector<int64_t> shape(table.sizes().begin(), table.sizes().end());
  shape[0] = n;
  return on.empty(shape, table.scalar_type());
}

template <class Run>
void with_ids(const Tensor& ids, const Run& run) {
  ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                       : run(data<const int64_t>(ids));
}

// Keys, sorted keys and CUB's scratch for n ids, in one allocation.
struct Order {
  Order(const OnDevice& on, int64_t n) {
    const size_t bytes = page_order_scratch_bytes(on.launch(), n);
    const size_t keys = memory.add<uint64_t>(n), sorted = memory.add<uint64_t>(n);
    const size_t scratch = memory.add<char>(static_cast<int64_t>(bytes));
    memory.allocate(on);
    order = {memory.at<uint64_t>(keys), memory.at<uint64_t>(sorted), memory.at<char>(scratch),
             bytes};
  }
  Scratch memory;
  PageOrder order;
};

Tensor gather_zero_copy_cuda(Tensor table, Tensor ids, bool aligned) {
  check(table, ids);
  const OnDevice on(ids, "gather_zero_copy");
  const void* from = on.pointer<char>(table, "table");
  Tensor out = rows_for(on, table, ids.numel());
  with_ids(ids, [&](const auto* which) {
    gather_rows(on.launch(), from, table.size(0), which, ids.numel(), row_bytes_of(table),
                out.data_ptr(), aligned);
  });
  return out;
}

Tensor gather_page_ordered_cuda(Tensor table, Tensor ids, int64_t page_bytes, int64_t blocks,
                                int64_t depth) {
  check(table, ids);
  check_pages(table, ids.numel(), page_bytes, blocks, depth);
  const OnDevice on(ids, "gather_page_ordered");
  const Pages pages{
      on.pointer<char>(table, "table"), table.size(0),          row_bytes_of(table), page_bytes,
      static_cast<int>(blocks),         static_cast<int>(depth)};
  const int64_t n = ids.numel();
  Tensor out = rows_for(on, table, n);
  const Order order(on, n);
  with_ids(ids, [&](const auto* which) {
    page_keys(on.launch(), which, 0, n, pages.num_rows, order.order.keys);
  });
  gather_keys(on.launch(), pages, order.order, n, out.data_ptr());
  return out;
}

void gather_once_cuda(Tensor table, std::vector<Tensor> batches, Tensor distinct, Tensor out,
                      int64_t blocks, int64_t depth) {
  if (batches.empty()) fail("batches is empty; give at least one");
  int64_t n = 0;
  for (const Tensor& ids : batches) {
    check(table, ids);
    check_cuda({{distinct, "distinct"}, {ids, "batches"}});
    n += ids.numel();
  }
  check_pages(table, n, kAnyPage, blocks, depth);
  check_layout(distinct, "distinct", 1);
  check_dtype(distinct, "distinct", ScalarType::Long);
  if (distinct.numel() != 1) fail("distinct must have 1 element, it has ", distinct.numel());
  check_cuda({{distinct, "distinct"}, {out, "out"}});
  check_layout(out, "out", table.dim());
  check_dtype(out, "out", table.scalar_type());
  bool same = out.size(0) == n;
  for (int64_t d = 1; d < table.dim(); ++d) same = same && out.size(d) == table.size(d);
  if (!same) fail("out must have one row of the table's shape for each of the ids");
  const OnDevice on(distinct, "gather_once");
  const Pages pages{
      on.pointer<char>(table, "table"), table.size(0),          row_bytes_of(table), kAnyPage,
      static_cast<int>(blocks),         static_cast<int>(depth)};
  const Order order(on, n);
  int64_t first = 0;
  for (const Tensor& ids : batches) {
    with_ids(ids, [&](const auto* which) {
      page_keys(on.launch(), which, first, ids.numel(), pages.num_rows, order.order.keys + first);
    });
    first += ids.numel();
  }
  gather_once(on.launch(), pages, order.order, n, data<int64_t>(distinct), out.data_ptr());
}

Tensor gather_over_cuda(Tensor table, Tensor kept, Tensor slots, Tensor generations,
                        int64_t generation, bool remember, Tensor ids, Tensor hits,
                        int64_t page_bytes, int64_t blocks, int64_t depth) {
  check(table, ids);
  check_pages(table, ids.numel(), page_bytes, blocks, depth);
  check_layout(kept, "kept", table.dim());
  check_dtype(kept, "kept", table.scalar_type());
  check_layout(slots, "slots", 1);
  check_dtype(slots, "slots", ScalarType::Int);
  check_layout(generations, "generations", 1);
  check_dtype(generations, "generations", ScalarType::Int);
  check_layout(hits, "hits", 1);
  check_dtype(hits, "hits", ScalarType::Long);
  check_cuda({{ids, "ids"},
              {kept, "kept"},
              {slots, "slots"},
              {generations, "generations"},
              {hits, "hits"}});
  if (slots.numel() != table.size(0) || generations.numel() != table.size(0)) {
    fail("slots and generations must have one entry for each of the table's rows");
  }
  if (hits.numel() != 1) fail("hits must have 1 element, it has ", hits.numel());
  check_table(kept, "kept");
  if (row_bytes_of(kept) != row_bytes_of(table)) fail("kept must have rows of the table's shape");
  check_generation(generation);
  const OnDevice on(ids, "gather_over");
  const Pages pages{
      on.pointer<char>(table, "table"), table.size(0),          row_bytes_of(table), page_bytes,
      static_cast<int>(blocks),         static_cast<int>(depth)};
  const Lookup lookup{data<int32_t>(slots), data<int32_t>(generations),
                      static_cast<int32_t>(generation), remember};
  const int64_t n = ids.numel();
  Tensor out = rows_for(on, table, n);
  const Order order(on, n);
  with_ids(ids, [&](const auto* which) {
    gather_kept(on.launch(), kept.data_ptr(), kept.size(0), lookup, which, n, pages.num_rows,
                pages.row_bytes, order.order.keys, data<int64_t>(hits), out.data_ptr());
  });
  gather_keys(on.launch(), pages, order.order, n, out.data_ptr());
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather_zero_copy", TORCH_BOX(&gather_zero_copy_cuda));
  m.impl("gather_page_ordered", TORCH_BOX(&gather_page_ordered_cuda));
  m.impl("gather_once", TORCH_BOX(&gather_once_cuda));
  m.impl("gather_over", TORCH_BOX(&gather_over_cuda));
}

}  // namespace gnnbench::cuda
