// PGSampler on torch's threads.
#include "cpu/pgsampler/pgsampler.h"

#include <vector>

#include "bindings/cpu/whole_batch.h"
#include "bindings/pgsampler_args.h"

namespace gnnbench {
namespace {

// Copies to a separate tensor, so that keeping it does not keep the source alive.
Tensor copy(const Tensor& from, int64_t n) {
  Tensor out = empty_cpu(n, from.scalar_type());
  if (n > 0) std::memcpy(out.data_ptr(), from.data_ptr(), n * from.element_size());
  return out;
}

template <class Id>
std::vector<Tensor> run(const BatchTask& task, uint32_t fetch_size, bool as_printed) {
  const Csc<Id> graph = csc_of<Id>(task.indptr, task.indices);
  const Tensor seeds = seeds_as_ids<Id>(task.seeds, graph.num_nodes);
  TaskSampler<Id> sampler(graph, task.draws, task.fanouts, task.with_positions);
  trace_mark(Stage::kPrepare, kWholeBatch);
  const FaultAt found =
      sampler.run(data<const Id>(seeds), seeds.numel(), fetch_size, as_printed, num_threads());
  if (has(found.fault, Fault::kEdgesFull)) {
    fail(
        "a hop draws more edges than the 2^31 - 1 that int32 blocks hold; take a smaller batch or ",
        "fanouts");
  }
  throw_on_fault(found, graph.num_nodes);
  trace_mark(Stage::kPick, kWholeBatch);

  const int hops = static_cast<int>(task.fanouts.size());
  const TaskCounts counts = sampler.counts();
  if (seeds.numel() + counts.nodes > INT32_MAX) {
    fail(seeds.numel() + counts.nodes, " ids in one batch do not fit int32 local ids");
  }
  const Scratch<int32_t> local_of(graph.num_nodes);
  Tensor src_nodes = empty_cpu(sampler.sources(hops - 1), kIdType<Id>);
  sampler.local_ids(local_of.ptr, data<Id>(src_nodes));
  trace_mark(Stage::kIdMap, kWholeBatch);

  std::vector<BatchHop> out;
  int64_t edges = 0;
  for (int h = 0; h < hops; ++h) {
    const int64_t n = sampler.edges(h);
    if (n > INT32_MAX) fail_hop_edges(h, n);
    BatchHop hop{empty_cpu(sampler.sources(h - 1) + 1, ScalarType::Int),
                 empty_cpu(n, ScalarType::Int),
                 h + 1 < hops ? copy(src_nodes, sampler.sources(h)) : src_nodes,
                 empty_cpu(task.with_positions ? n : 0, ScalarType::Long)};
    sampler.block(h, local_of.ptr, data<int32_t>(hop.indptr), data<int32_t>(hop.local),
                  task.with_positions ? data<int64_t>(hop.carried) : nullptr);
    out.push_back(hop);
    edges += n;
  }
  std::vector<Tensor> flat = answer(out, false, task.with_positions);
  flat.push_back(pgsampler_stats({counts.enqueued, edges}, counts.enqueued, counts.processed,
                                 counts.stale, 0, 1));
  trace_mark(Stage::kBlock, kWholeBatch);
  return flat;
}

// Memory grows with the tasks, and one thread draws a row, so `capacity`, `hubs` and `worker` are
// only validated.
std::vector<Tensor> pgsampler_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                                  std::vector<int64_t> fanouts, std::string pick,
                                  std::vector<Tensor> tables, std::vector<int64_t> walk,
                                  int64_t key, int64_t batch, bool with_positions,
                                  std::string variant, int64_t fetch_size, std::string hubs,
                                  std::string worker, std::vector<int64_t> capacity) {
  const BatchTask task = batch_task(indptr, indices, seeds, fanouts, pick, tables, walk,
                                    "cumulative", key, batch, with_positions);
  check_pgsampler_pick(task.draws.spec.pick);
  const PgVariant kind = pgsampler_variant(variant);
  if (kind == PgVariant::kFusion || kind == PgVariant::kNonPersistent) {
    fail("variant '", variant,
         "' leaves the scheduling of tasks to a GPU; take 'persistent' on the CPU");
  }
  const uint32_t fetch = check_pgsampler(seeds, fanouts, fetch_size, capacity);
  splits_hubs(hubs);
  pgsampler_by_block(worker, variant, hubs);
  const bool as_printed = kind == PgVariant::kAsPrinted;
  return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task, fetch, as_printed)
                                                  : run<int64_t>(task, fetch, as_printed);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("pgsampler", TORCH_BOX(&pgsampler_cpu)); }

}  // namespace gnnbench
