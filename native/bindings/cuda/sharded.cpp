// Rows of a table that is sharded over several GPUs.
#include "cuda/features/sharded.h"

#include <optional>
#include <vector>

#include "bindings/cuda/common.h"
#include "cuda/features/page_order.h"

namespace gnnbench::cuda {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 31;  // places are int32, and no id is kNowhere

// Converts the shards for the kernel. Each must hold its share of the rows.
Shards shards_of(const std::vector<Tensor>& shards, int64_t own) {
  const int64_t count = static_cast<int64_t>(shards.size());
  if (count < 1 || count > kMostShards) {
    fail("shards must be 1 to ", kMostShards, ", they are ", count);
  }
  if (own < 0 || own >= count) fail("own must be one of the ", count, " shards, it is ", own);
  Shards found{};
  found.count = static_cast<int>(count);
  found.own = static_cast<int>(own);
  for (const Tensor& shard : shards) {
    check_table(shard, "shards");
    check_dtype(shard, "shards", shards[0].scalar_type());
    check_cuda({{shards[0], "shards"}, {shard, "shards"}});
    if (shard.dim() != shards[0].dim() || row_bytes_of(shard) != row_bytes_of(shards[0])) {
      fail("shards must have rows of one shape");
    }
    found.num_rows += shard.size(0);
  }
  if (found.num_rows > kMostRows) fail("shards must hold at most 2^31 rows together");
  for (int64_t s = 0; s < count; ++s) {
    found.at[s] = shards[static_cast<size_t>(s)].data_ptr();
    if (shards[static_cast<size_t>(s)].size(0) != (found.num_rows - s + count - 1) / count) {
      fail("shards must hold rows in round-robin order; shard ", s, " has a wrong number of rows");
    }
  }
  return found;
}

void check_reading(int64_t n, int64_t blocks, int64_t depth) {
  if (n >= kMostRows) fail("ids must be fewer than 2^31");
  if (blocks < 0 || blocks > INT32_MAX) fail("blocks must be at least 0, it is ", blocks);
  if (depth != 1 && depth != 2 && depth != 4) fail("depth must be 1, 2 or 4, it is ", depth);
}

Tensor gather_sharded_cuda(std::vector<Tensor> shards, int64_t own, std::optional<Tensor> places,
                           std::optional<Tensor> table, Tensor ids, Tensor counts, int64_t blocks,
                           int64_t depth, int64_t page_bytes, int64_t readers) {
  const Shards from = shards_of(shards, own);
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  check_reading(ids.numel(), blocks, depth);
  check_layout(counts, "counts", 1);
  check_dtype(counts, "counts", ScalarType::Long);
  if (counts.numel() != 3) fail("counts must have 3 elements, it has ", counts.numel());
  check_cuda({{ids, "ids"}, {shards[0], "shards"}, {counts, "counts"}});
  if (places) {
    check_layout(*places, "places", 1);
    check_dtype(*places, "places", ScalarType::Int);
    check_cuda({{ids, "ids"}, {*places, "places"}});
  }
  const int64_t num_nodes = places ? places->numel() : from.num_rows;
  if (page_bytes < 0) fail("page_bytes must be at least 0, it is ", page_bytes);
  if (readers < 1 || readers > 65535) fail("readers must be 1 to 65535, it is ", readers);
  const int64_t row_bytes = row_bytes_of(shards[0]), n = ids.numel();
  const OnDevice on(ids, "gather_sharded");
  const void* host = nullptr;
  if (table) {
    check_table(*table, "table");
    check_dtype(*table, "table", shards[0].scalar_type());
    if (!table->is_cpu()) fail("table must be on the CPU, in pinned memory");
    if (table->size(0) != num_nodes) fail("table must have a row for each of the places");
    if (num_nodes > kMostRows) fail("table must have at most 2^31 rows");
    if (row_bytes_of(*table) != row_bytes) fail("table must have rows of the shards' shape");
    host = on.pointer<char>(*table, "table");
  }
  std::vector<int64_t> shape(shards[0].sizes().begin(), shards[0].sizes().end());
  shape[0] = n;
  Tensor out = on.empty(shape, shards[0].scalar_type());
  const bool ordered = table.has_value() && page_bytes > 0;
  Scratch memory;
  PageOrder order{};
  if (ordered) {
    const size_t bytes = page_order_scratch_bytes(on.launch(), n);
    const size_t keys = memory.add<uint64_t>(n), sorted = memory.add<uint64_t>(n);
    const size_t scratch = memory.add<char>(static_cast<int64_t>(bytes));
    memory.allocate(on);
    order = {memory.at<uint64_t>(keys), memory.at<uint64_t>(sorted), memory.at<char>(scratch),
             bytes};
  }
  const Reading reading{static_cast<int>(blocks), static_cast<int>(depth)};
  const int32_t* known = places ? data<const int32_t>(*places) : nullptr;
  const auto run = [&](const auto* which) {
    gather_sharded(on.launch(), from, reading, known, host, which, n, num_nodes, row_bytes,
                   order.keys, data<int64_t>(counts), out.data_ptr());
  };
  ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                       : run(data<const int64_t>(ids));
  if (ordered) {
    constexpr int kDepth = 4;  // concurrent host rows, as in gather_page_ordered
    const Pages pages{host, num_nodes, row_bytes, page_bytes, static_cast<int>(readers), kDepth};
    gather_keys(on.launch(), pages, order, n, out.data_ptr());
  }
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("gather_sharded", TORCH_BOX(&gather_sharded_cuda));
}

}  // namespace gnnbench::cuda
