// GNNLab's whole batch: per hop, sample, then assign local ids by the versioned table.
#include "cpu/gnnlab/gnnlab.h"

#include "bindings/cpu/whole_batch.h"
#include "bindings/gnnlab_args.h"

namespace gnnbench {
namespace {

template <class Id>
std::vector<Tensor> run(BatchTask& task, const Tensor& table, int64_t version) {
  const Csc<Id> csc = csc_of<Id>(task.indptr, task.indices);
  Tensor nodes = seeds_as_ids<Id>(task.seeds, csc.num_nodes);
  Tensor need = empty_cpu(1, ScalarType::Long);
  int64_t& needed = data<int64_t>(need)[0] = 0;
  std::vector<BatchHop> hops;
  int64_t first = 0;  // index of the hop's first destination among the known nodes
  for (size_t h = 0; h < task.fanouts.size(); ++h) {
    task.at_hop(h);
    const int64_t known = nodes.numel();
    HopEdges e = sample_one_hop(csc, data<const Id>(nodes) + first, known - first, task.draws,
                                task.with_positions, h == 0 ? "seeds" : "indices");
    const int64_t edges = e.neighbors.numel();
    if (known + edges > INT32_MAX) {
      fail(known + edges, " ids in one hop do not fit int32 local ids");
    }
    needed = std::max(needed, versioned_need(known, edges, csc.num_nodes));
    if (needed > table.numel()) return {need};

    const VersionedTable ids = versioned_table(data<int64_t>(table), table.numel(), version);
    if (h == 0 && versioned_seeds(ids, data<const Id>(nodes), known) >= 0) {
      throw_on_fault(Fault::kRepeatedSeed, csc.num_nodes);
    }
    Tensor local = empty_cpu(edges, ScalarType::Int);
    const Scratch<uint8_t> fresh(edges);
    const Scratch<int64_t> starts(num_chunks(edges, kVersionedChunk));
    const VersionedHop<Id> hop{ids,       data<const Id>(e.neighbors), edges,
                               known,     data<int32_t>(local),        fresh.ptr,
                               starts.ptr};
    Tensor named = empty_cpu(versioned_insert(hop), kIdType<Id>);
    std::copy_n(data<const Id>(nodes), known, data<Id>(named));
    versioned_finish(hop, data<Id>(named));
    trace_mark(Stage::kIdMap, static_cast<int>(h));
    hops.push_back({e.indptr, local, named, task.walks() ? e.weights : e.positions});
    nodes = named;
    if (task.only_new) first = known;
  }
  std::vector<Tensor> out =
      answer(std::move(hops), task.only_new, task.walks() || task.with_positions);
  out.push_back(need);
  return out;
}

std::vector<Tensor> gnnlab_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                               std::vector<int64_t> fanouts, std::string pick,
                               std::vector<Tensor> tables, std::vector<int64_t> walk,
                               std::string frontier, int64_t key, int64_t batch,
                               bool with_positions, Tensor table, int64_t version) {
  BatchTask task = batch_task(indptr, indices, seeds, fanouts, pick, tables, walk, frontier, key,
                              batch, with_positions);
  check_cpu(table, "table");
  check_versioned(table, version, indptr.numel() - 1);
  check_apart(table, "table", indptr, "indptr");
  check_apart(table, "table", indices, "indices");
  check_apart(table, "table", seeds, "seeds");
  return with_team(task, [&] {
    return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task, table, version)
                                                    : run<int64_t>(task, table, version);
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("gnnlab", TORCH_BOX(&gnnlab_cpu)); }

}  // namespace gnnbench
