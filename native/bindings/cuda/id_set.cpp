#include "cuda/features/id_set.h"

#include <tuple>
#include <vector>

#include "bindings/cuda/common.h"
#include "bindings/cuda/notification.h"
#include "bindings/id_set_args.h"
#include "cuda/common/scan.h"

namespace gnnbench::cuda {
namespace {

void check_all_cuda(const std::vector<Tensor>& batches) {
  for (const Tensor& batch : batches) check_cuda({{batches[0], "batches"}, {batch, "batches"}});
}

template <class Id>
std::tuple<Tensor, Tensor> run(const std::vector<Tensor>& batches, int64_t num_nodes, bool shared) {
  const OnDevice on(batches[0], "union_ids");
  const Launch& launch = on.launch();
  const int64_t num_words = id_words(num_nodes);
  const size_t scan_bytes = scan_scratch_bytes<int32_t>(launch, num_words + 1);

  Scratch memory;  // both bitmaps first, to clear them at once
  const size_t seen = memory.add<uint32_t>(num_words);
  const size_t again = shared ? memory.add<uint32_t>(num_words) : seen;
  const size_t bits_bytes = memory.bytes();
  const size_t counts = memory.add<int32_t>(num_words + 1);
  const size_t scan = memory.add<char>(static_cast<int64_t>(scan_bytes));
  memory.allocate(on);
  GNNBENCH_CUDA_CALL(launch, cudaMemsetAsync(memory.at<char>(0), 0, bits_bytes, launch.stream));
  for (const Tensor& batch : batches) {
    mark_ids(launch, data<const Id>(batch), batch.numel(), num_nodes, memory.at<uint32_t>(seen),
             shared ? memory.at<uint32_t>(again) : nullptr);
  }
  const uint32_t* const bits = memory.at<uint32_t>(again);
  int32_t* const before = memory.at<int32_t>(counts);
  count_ids(launch, bits, num_words, before);
  exclusive_scan(launch, memory.at<char>(scan), scan_bytes, before, num_words + 1);

  // Host synchronisation, one per union: the number of ids determines the output size.
  const int64_t count = read_numbers(on, {before + num_words, 1})[0];
  Tensor ids = on.empty({count}, kIdType<Id>), set = on.empty({num_words, 2}, ScalarType::Int);
  finish_set(launch, bits, before, num_words, data<IdWord>(set), data<Id>(ids));
  return {ids, set};
}

std::tuple<Tensor, Tensor> union_ids_cuda(std::vector<Tensor> batches, int64_t num_nodes,
                                          bool shared) {
  check_batches(batches);
  check_num_nodes(num_nodes);
  check_all_cuda(batches);
  return batches[0].scalar_type() == ScalarType::Int ? run<int32_t>(batches, num_nodes, shared)
                                                     : run<int64_t>(batches, num_nodes, shared);
}

Tensor gather_of_set_cuda(Tensor rows, Tensor set, Tensor ids) {
  check_rows(rows, set, ids);
  check_cuda({{rows, "rows"}, {set, "id_set"}, {ids, "ids"}});
  const OnDevice on(rows, "gather_of_set");
  std::vector<int64_t> shape(rows.sizes().begin(), rows.sizes().end());
  shape[0] = ids.numel();
  Tensor out = on.empty(shape, rows.scalar_type());
  const auto run = [&](const auto* from) {
    gather_of_set(on.launch(), rows.data_ptr(), rows.size(0), data<const IdWord>(set), set.size(0),
                  from, ids.numel(), row_bytes_of(rows), out.data_ptr());
  };
  ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                       : run(data<const int64_t>(ids));
  return out;
}

void ones_of_set_cuda(std::vector<Tensor> batches, Tensor set, int64_t first, Tensor out) {
  const Ones ones = check_ones(batches, set, first, out);
  check_cuda({{out, "ones"}, {set, "id_set"}, {batches[0], "batches"}});
  check_all_cuda(batches);
  const OnDevice on(out, "ones_of_set");
  for (int64_t b = 0; b < ones.batches; ++b) {
    const Tensor& ids = batches[b];
    const auto run = [&](const auto* from) {
      fill_ones(on.launch(), data<const IdWord>(set), set.size(0), from, ids.numel(), b, ones);
    };
    ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                         : run(data<const int64_t>(ids));
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("union_ids", TORCH_BOX(&union_ids_cuda));
  m.impl("gather_of_set", TORCH_BOX(&gather_of_set_cuda));
  m.impl("ones_of_set", TORCH_BOX(&ones_of_set_cuda));
}

}  // namespace gnnbench::cuda
