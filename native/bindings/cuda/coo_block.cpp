// DGL's construction of a block from edges in COO (to_block), which both its sampler and
// PGSampler's end with (PGSampler, Fig. 5). One table serves both ends; DGL fills another for
// destinations.
#include "bindings/cuda/notification.h"
#include "bindings/cuda/stages.h"
#include "bindings/fault.h"
#include "cuda/common/scan.h"
#include "cuda/coo/coo.h"

namespace gnnbench::cuda {

template <class Id>
CooBlock coo_block(const OnDevice& on, const Tensor& known, const GlobalEdges<Id>& edges,
                   const HopEdges* hop, int64_t num_nodes, int number) {
  const Launch& launch = on.launch();
  const int64_t rows = known.numel();
  const IdMapItems<Id> items{data<const Id>(known), rows, edges.cols, edges.n};
  const int64_t n = items.size();
  if (n > kIdMapMaxItems) fail(n, " ids in one hop do not fit int32 local ids");
  const int64_t capacity = id_map_capacity(n);
  const size_t scan_bytes = std::max(scan_scratch_bytes<int32_t>(launch, n + 1),
                                     scan_scratch_bytes<int32_t>(launch, rows + 1));

  Scratch memory;
  const size_t keys = memory.add<Id>(capacity);
  const size_t values = memory.add<int32_t>(capacity);
  const size_t ranks = memory.add<int32_t>(n + 2);
  const size_t scan = memory.add<char>(static_cast<int64_t>(scan_bytes));
  const size_t rows_at = memory.add<int32_t>(edges.n);
  const size_t cols_at = memory.add<int32_t>(edges.n);
  const size_t places_at = memory.add<int32_t>(edges.n);
  memory.allocate(on);
  const IdMapScratch<Id> scratch{memory.at<Id>(keys), memory.at<int32_t>(values), nullptr,
                                 memory.at<int32_t>(ranks), capacity};

  id_map_insert(launch, items, scratch, hop == nullptr ? nullptr : hop->faults);
  exclusive_scan(launch, memory.at<char>(scan), scan_bytes, scratch.ranks, n + 1);
  // Host synchronisation: the number of nodes determines the size of src_nodes.
  const int64_t* const numbers = read_numbers(on, {scratch.ranks + n, 2});
  const int64_t num_src = numbers[0];
  throw_on_fault(static_cast<Fault>(numbers[1]), num_nodes, "seeds");

  CooBlock block{on.empty({rows + 1}, ScalarType::Int), on.empty({edges.n}, ScalarType::Int),
                 on.empty({num_src}, kIdType<Id>),
                 on.empty({edges.positions != nullptr ? edges.n : 0}, ScalarType::Long)};
  int32_t* const local_rows = memory.at<int32_t>(rows_at);
  int32_t* const local_cols = memory.at<int32_t>(cols_at);
  int32_t* const places = memory.at<int32_t>(places_at);
  int32_t* const indptr = data<int32_t>(block.indptr);
  id_map_finish(launch, items, scratch, data<Id>(block.src_nodes), local_cols);
  id_map_find(launch, scratch, edges.rows, edges.n, local_rows);
  trace_mark(launch, Stage::kIdMap, number);
  GNNBENCH_CUDA_CALL(launch,
                     cudaMemsetAsync(indptr, 0, (rows + 1) * sizeof(int32_t), launch.stream));
  coo_count(launch, local_rows, edges.n, indptr, places);
  exclusive_scan(launch, memory.at<char>(scan), scan_bytes, indptr, rows + 1);
  coo_place(launch, {local_rows, places, local_cols, edges.positions, edges.n}, indptr,
            data<int32_t>(block.local),
            edges.positions != nullptr ? data<int64_t>(block.positions) : nullptr);
  trace_mark(launch, Stage::kBlock, number);
  return block;
}

template CooBlock coo_block<int32_t>(const OnDevice&, const Tensor&, const GlobalEdges<int32_t>&,
                                     const HopEdges*, int64_t, int);
template CooBlock coo_block<int64_t>(const OnDevice&, const Tensor&, const GlobalEdges<int64_t>&,
                                     const HopEdges*, int64_t, int);

}  // namespace gnnbench::cuda
