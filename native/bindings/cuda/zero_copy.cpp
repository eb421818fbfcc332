// Rows of a host table in pinned memory, read by the device of the ids.
#include <vector>

#include "bindings/cuda/common.h"
#include "cuda/features/elementwise.h"
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

void check_out(const Tensor& out, const Tensor& table, int64_t n) {
  check_layout(out, "out", table.dim());
  check_dtype(out, "out", table.scalar_type());
  bool same = out.size(0) == n;
  for (int64_t d = 1; d < table.dim(); ++d) same = same && out.size(d) == table.size(d);
  if (!same) fail("out must have one row of the table's shape for each of the ids");
}

// The gathers by_rows, by_elements and by_pages check all arguments but `out`.
// Runs `gather(on, out)` with rows of its own.
template <class Gather>
Tensor with_new_rows(const char* op, const Tensor& table, const Tensor& ids, const Gather& gather) {
  const OnDevice on(ids, op);
  Tensor out = rows_for(on, table, ids.numel());
  gather(on, out);
  return out;
}

// Runs `gather(on, out)` with the caller's rows, on the device of the ids.
template <class Gather>
void with_rows(const char* op, const Tensor& table, const Tensor& ids, const Tensor& out,
               const Gather& gather) {
  check_out(out, table, ids.numel());
  check_cuda({{ids, "ids"}, {out, "out"}});
  check_apart(out, "out", ids, "ids");
  gather(OnDevice(ids, op), out);
}

auto by_rows(const Tensor& table, const Tensor& ids, bool aligned) {
  check(table, ids);
  return [&table, &ids, aligned](const OnDevice& on, const Tensor& out) {
    const void* from = on.pointer<char>(table, "table");
    with_ids(ids, [&](const auto* which) {
      gather_rows(on.launch(), from, table.size(0), which, ids.numel(), row_bytes_of(table),
                  out.data_ptr(), aligned);
    });
  };
}

auto by_elements(const Tensor& table, const Tensor& ids, bool shifted) {
  check(table, ids);
  if (row_bytes_of(table) % kElementBytes != 0) {
    fail("table must have rows of a multiple of 4 bytes, which a thread loads; they have ",
         row_bytes_of(table));
  }
  return [&table, &ids, shifted](const OnDevice& on, const Tensor& out) {
    const void* from = on.pointer<char>(table, "table");
    if (reinterpret_cast<uintptr_t>(from) % kElementBytes != 0) {
      fail("table must begin at a multiple of 4 bytes, which a thread loads");
    }
    if (reinterpret_cast<uintptr_t>(out.data_ptr()) % kElementBytes != 0) {
      fail("out must begin at a multiple of 4 bytes, which a thread stores");
    }
    with_ids(ids, [&](const auto* which) {
      gather_elementwise(on.launch(), from, table.size(0), which, ids.numel(), row_bytes_of(table),
                         out.data_ptr(), shifted);
    });
  };
}

auto by_pages(const Tensor& table, const Tensor& ids, int64_t page_bytes, int64_t blocks,
              int64_t depth) {
  check(table, ids);
  const int64_t n = ids.numel();
  check_pages(table, n, page_bytes, blocks, depth);
  return [=, &table, &ids](const OnDevice& on, const Tensor& out) {
    const Pages pages{
        on.pointer<char>(table, "table"), table.size(0),          row_bytes_of(table), page_bytes,
        static_cast<int>(blocks),         static_cast<int>(depth)};
    const Order order(on, n);
    with_ids(ids, [&](const auto* which) {
      page_keys(on.launch(), which, 0, n, pages.num_rows, order.order.keys);
    });
    gather_keys(on.launch(), pages, order.order, n, out.data_ptr());
  };
}

Tensor gather_zero_copy_cuda(Tensor table, Tensor ids, bool aligned) {
  return with_new_rows("gather_zero_copy", table, ids, by_rows(table, ids, aligned));
}

void gather_zero_copy_out_cuda(Tensor table, Tensor ids, bool aligned, Tensor out) {
  with_rows("gather_zero_copy_out", table, ids, out, by_rows(table, ids, aligned));
}

Tensor gather_elementwise_cuda(Tensor table, Tensor ids, bool shifted) {
  return with_new_rows("gather_elementwise", table, ids, by_elements(table, ids, shifted));
}

void gather_elementwise_out_cuda(Tensor table, Tensor ids, bool shifted, Tensor out) {
  with_rows("gather_elementwise_out", table, ids, out, by_elements(table, ids, shifted));
}

Tensor gather_page_ordered_cuda(Tensor table, Tensor ids, int64_t page_bytes, int64_t blocks,
                                int64_t depth) {
  return with_new_rows("gather_page_ordered", table, ids,
                       by_pages(table, ids, page_bytes, blocks, depth));
}

void gather_page_ordered_out_cuda(Tensor table, Tensor ids, int64_t page_bytes, int64_t blocks,
                                  int64_t depth, Tensor out) {
  with_rows("gather_page_ordered_out", table, ids, out,
            by_pages(table, ids, page_bytes, blocks, depth));
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
  check_out(out, table, n);
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

// Rows on a device and their look-up. They must match the table and be on the device of the ids.
struct Kept {
  const Tensor &rows, &slots, &generations;
  int64_t generation;
  const char *rows_name, *slots_name, *generations_name;
};

void check_kept(const Kept& kept, const Tensor& table, const Tensor& ids) {
  check_layout(kept.rows, kept.rows_name, table.dim());
  check_dtype(kept.rows, kept.rows_name, table.scalar_type());
  check_layout(kept.slots, kept.slots_name, 1);
  check_dtype(kept.slots, kept.slots_name, ScalarType::Int);
  check_layout(kept.generations, kept.generations_name, 1);
  check_dtype(kept.generations, kept.generations_name, ScalarType::Int);
  check_cuda({{ids, "ids"},
              {kept.rows, kept.rows_name},
              {kept.slots, kept.slots_name},
              {kept.generations, kept.generations_name}});
  if (kept.slots.numel() != table.size(0) || kept.generations.numel() != table.size(0)) {
    fail(kept.slots_name, " and ", kept.generations_name,
         " must have one entry for each of the table's rows");
  }
  check_table(kept.rows, kept.rows_name);
  if (row_bytes_of(kept.rows) != row_bytes_of(table)) {
    fail(kept.rows_name, " must have rows of the table's shape");
  }
  check_generation(kept.generation);
}

KeptRows rows_of(const Kept& kept, bool remember) {
  return {kept.rows.data_ptr(), kept.rows.size(0),
          Lookup{data<int32_t>(kept.slots), data<int32_t>(kept.generations),
                 static_cast<int32_t>(kept.generation), remember}};
}

// Rows of the first of `kept` that has them, else of the table; the first of `kept` may remember.
Tensor gather_over(const char* op, const Tensor& table, const std::vector<Kept>& kept,
                   bool remember, const Tensor& ids, const Tensor& hits, int64_t page_bytes,
                   int64_t blocks, int64_t depth) {
  check(table, ids);
  check_pages(table, ids.numel(), page_bytes, blocks, depth);
  check_layout(hits, "hits", 1);
  check_dtype(hits, "hits", ScalarType::Long);
  check_cuda({{ids, "ids"}, {hits, "hits"}});
  std::vector<KeptRows> levels;
  for (const Kept& one : kept) {
    check_kept(one, table, ids);
    levels.push_back(rows_of(one, remember && levels.empty()));
  }
  const auto count = static_cast<int64_t>(levels.size());
  if (hits.numel() != count) {
    fail("hits must have ", count, count == 1 ? " element" : " elements", ", it has ",
         hits.numel());
  }
  const OnDevice on(ids, op);
  const Pages pages{
      on.pointer<char>(table, "table"), table.size(0),          row_bytes_of(table), page_bytes,
      static_cast<int>(blocks),         static_cast<int>(depth)};
  const int64_t n = ids.numel();
  Tensor out = rows_for(on, table, n);
  const Order order(on, n);
  with_ids(ids, [&](const auto* which) {
    gather_kept(on.launch(), levels.data(), static_cast<int>(count), which, n, pages.num_rows,
                pages.row_bytes, order.order.keys, data<int64_t>(hits), out.data_ptr());
  });
  gather_keys(on.launch(), pages, order.order, n, out.data_ptr());
  return out;
}

Tensor gather_over_cuda(Tensor table, Tensor kept, Tensor slots, Tensor generations,
                        int64_t generation, bool remember, Tensor ids, Tensor hits,
                        int64_t page_bytes, int64_t blocks, int64_t depth) {
  const Kept one{kept, slots, generations, generation, "kept", "slots", "generations"};
  return gather_over("gather_over", table, {one}, remember, ids, hits, page_bytes, blocks, depth);
}

Tensor gather_over_cache_cuda(Tensor table, Tensor kept, Tensor slots, Tensor generations,
                              int64_t generation, bool remember, Tensor cache, Tensor cache_slots,
                              Tensor cache_generations, int64_t cache_generation, Tensor ids,
                              Tensor hits, int64_t page_bytes, int64_t blocks, int64_t depth) {
  const Kept last{kept, slots, generations, generation, "kept", "slots", "generations"};
  const Kept cached{cache,   cache_slots,   cache_generations,  cache_generation,
                    "cache", "cache_slots", "cache_generations"};
  return gather_over("gather_over_cache", table, {last, cached}, remember, ids, hits, page_bytes,
                     blocks, depth);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather_zero_copy", TORCH_BOX(&gather_zero_copy_cuda));
  m.impl("gather_elementwise", TORCH_BOX(&gather_elementwise_cuda));
  m.impl("gather_page_ordered", TORCH_BOX(&gather_page_ordered_cuda));
  m.impl("gather_zero_copy_out", TORCH_BOX(&gather_zero_copy_out_cuda));
  m.impl("gather_elementwise_out", TORCH_BOX(&gather_elementwise_out_cuda));
  m.impl("gather_page_ordered_out", TORCH_BOX(&gather_page_ordered_out_cuda));
  m.impl("gather_once", TORCH_BOX(&gather_once_cuda));
  m.impl("gather_over", TORCH_BOX(&gather_over_cuda));
  m.impl("gather_over_cache", TORCH_BOX(&gather_over_cache_cuda));
}

}  // namespace gnnbench::cuda
