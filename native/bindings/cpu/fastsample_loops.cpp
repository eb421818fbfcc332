// FastSample's Algorithm 1 loop by loop, with a dense map that the caller keeps between batches.
#include "bindings/cpu/choices.h"
#include "bindings/cpu/dense_map.h"
#include "bindings/cpu/whole_batch.h"
#include "cpu/fastsample/loops.h"
#include "gnnbench/undo.h"

namespace gnnbench {
namespace {

template <class Id>
void forget(int32_t* map, const Tensor& ids) {
  const Id* const nodes = data<const Id>(ids);
  parallel_chunks(ids.numel(), kKeyChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::atomic_ref(map[nodes[i]]).store(-1, std::memory_order_relaxed);
    }
  });
}

template <class Id>
std::vector<Tensor> run(BatchTask& task, int32_t* map) {
  const Csc<Id> csc = csc_of<Id>(task.indptr, task.indices);
  Tensor nodes = seeds_as_ids<Id>(task.seeds, csc.num_nodes);
  Undo forget_nodes([&] { forget<Id>(map, nodes); });
  for (int64_t i = 0; i < nodes.numel(); ++i) {
    int32_t& entry = map[data<const Id>(nodes)[i]];
    if (entry != -1) throw_on_fault(Fault::kRepeatedSeed, csc.num_nodes);
    entry = static_cast<int32_t>(i);
  }
  std::vector<BatchHop> hops;
  int64_t first = 0;  // index of the hop's first destination among the nodes
  for (size_t h = 0; h < task.fanouts.size(); ++h) {
    task.at_hop(h);
    const int64_t known = nodes.numel(), n = known - first;
    const Id* const dst = data<const Id>(nodes) + first;
    Tensor indptr, sampled, carried;
    if (task.walks()) {
      HopEdges e = sample_one_hop(csc, dst, n, task.draws, false, "indices");
      indptr = e.indptr, sampled = e.neighbors, carried = e.weights;
    } else {
      ChosenEdges e = choose_edges(csc, dst, n, task.draws, task.with_positions, false);
      indptr = e.indptr, sampled = e.neighbors, carried = e.positions;
    }
    const int64_t edges = sampled.numel();
    if (known + edges > INT32_MAX) fail_hop_edges(static_cast<int64_t>(h), edges);
    const int64_t workers = loop_workers(edges);
    const Scratch<Id> fresh(edges);
    const Scratch<int64_t> found(workers);
    Tensor local = empty_cpu(edges, ScalarType::Int);
    const LoopNames<Id> names{map,       data<const Id>(sampled), edges, known, workers, fresh.ptr,
                              found.ptr, data<int32_t>(local)};
    Undo forget_sampled([&] { forget<Id>(map, sampled); });
    const int64_t total = loop_claim(names);
    Tensor named = empty_cpu(total, kIdType<Id>);
    std::copy_n(data<const Id>(nodes), known, data<Id>(named));
    loop_name(names, data<Id>(named));
    forget_sampled.armed = false;
    nodes = named;
    trace_mark(Stage::kIdMap, static_cast<int>(h));
    hops.push_back({indptr, local, nodes, carried});
    if (task.only_new) first = known;
  }
  forget_nodes.armed = false;
  forget<Id>(map, nodes);
  return answer(std::move(hops), task.only_new, task.walks() || task.with_positions);
}

std::vector<Tensor> fastsample_loops_cpu(Tensor indptr, Tensor indices, Tensor seeds,
                                         std::vector<int64_t> fanouts, std::string pick,
                                         std::vector<Tensor> tables, std::vector<int64_t> walk,
                                         std::string frontier, int64_t key, int64_t batch,
                                         bool with_positions, Tensor dense_map) {
  BatchTask task = batch_task(indptr, indices, seeds, fanouts, pick, tables, walk, frontier, key,
                              batch, with_positions);
  check_dense_map(dense_map, task);
  return with_team(task, [&] {
    int32_t* const map = data<int32_t>(dense_map);
    return indices.scalar_type() == ScalarType::Int ? run<int32_t>(task, map)
                                                    : run<int64_t>(task, map);
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("fastsample_loops", TORCH_BOX(&fastsample_loops_cpu));
}

}  // namespace gnnbench
