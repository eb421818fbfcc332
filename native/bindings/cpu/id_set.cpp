#include "cpu/features/id_set.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "bindings/cpu/memory.h"
#include "bindings/id_set_args.h"
#include "cpu/features/gather.h"

namespace gnnbench {
namespace {

template <class Id>
int64_t id_at(const Tensor& ids, int64_t position) {
  return static_cast<int64_t>(data<const Id>(ids)[position]);
}

template <class Id>
std::tuple<Tensor, Tensor> run(const std::vector<Tensor>& batches, int64_t num_nodes, bool shared) {
  const int64_t num_words = id_words(num_nodes);
  const Scratch<uint32_t> seen(num_words), again(shared ? num_words : 0);
  std::fill_n(seen.ptr, num_words, 0);
  if (shared) std::fill_n(again.ptr, num_words, 0);
  for (const Tensor& batch : batches) {
    const int64_t bad = mark_ids(data<const Id>(batch), batch.numel(), num_nodes, seen.ptr,
                                 shared ? again.ptr : nullptr);
    if (bad >= 0) {
      fail("batches holds ", id_at<Id>(batch, bad), " at position ", bad,
           ", the graph has the nodes 0 to ", num_nodes - 1);
    }
  }
  Tensor set = empty_cpu({num_words, 2}, ScalarType::Int);
  IdWord* const words = data<IdWord>(set);
  const int64_t count = count_ids(shared ? again.ptr : seen.ptr, num_words, words);
  Tensor ids = empty_cpu(count, kIdType<Id>);
  list_ids(words, num_words, data<Id>(ids));
  return {ids, set};
}

std::tuple<Tensor, Tensor> union_ids_cpu(std::vector<Tensor> batches, int64_t num_nodes,
                                         bool shared) {
  check_batches(batches);
  check_num_nodes(num_nodes);
  for (const Tensor& batch : batches) check_cpu(batch, "batches");
  return batches[0].scalar_type() == ScalarType::Int ? run<int32_t>(batches, num_nodes, shared)
                                                     : run<int64_t>(batches, num_nodes, shared);
}

template <class Id>
void gather(const Tensor& rows, const Tensor& set, const Tensor& ids, Tensor& out) {
  const int64_t n = ids.numel();
  const Scratch<int64_t> places(n);
  places_of(data<const IdWord>(set), set.size(0), data<const Id>(ids), n, places.ptr);
  const int64_t bad = gather_rows(data<const char>(rows), rows.size(0), row_bytes_of(rows),
                                  places.ptr, n, data<char>(out));
  if (bad >= 0)
    fail("ids holds ", id_at<Id>(ids, bad), " at position ", bad, ", which has no row in the set");
}

Tensor gather_of_set_cpu(Tensor rows, Tensor set, Tensor ids) {
  check_rows(rows, set, ids);
  check_cpu(rows, "rows");
  check_cpu(set, "id_set");
  check_cpu(ids, "ids");
  std::vector<int64_t> shape(rows.sizes().begin(), rows.sizes().end());
  shape[0] = ids.numel();
  Tensor out = empty_cpu(shape, rows.scalar_type());
  ids.scalar_type() == ScalarType::Int ? gather<int32_t>(rows, set, ids, out)
                                       : gather<int64_t>(rows, set, ids, out);
  return out;
}

void ones_of_set_cpu(std::vector<Tensor> batches, Tensor set, int64_t first, Tensor out) {
  const Ones ones = check_ones(batches, set, first, out);
  check_cpu(set, "id_set");
  check_cpu(out, "ones");
  const IdWord* const words = data<const IdWord>(set);
  for (int64_t b = 0; b < ones.batches; ++b) {
    const Tensor& ids = batches[b];
    check_cpu(ids, "batches");
    const auto run = [&](const auto* from) {
      fill_ones(words, set.size(0), from, ids.numel(), b, ones);
    };
    ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                         : run(data<const int64_t>(ids));
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("union_ids", TORCH_BOX(&union_ids_cpu));
  m.impl("gather_of_set", TORCH_BOX(&gather_of_set_cpu));
  m.impl("ones_of_set", TORCH_BOX(&ones_of_set_cpu));
}

}  // namespace gnnbench
