// GNNLab's whole batch: per hop, sample, then assign local ids by the versioned table. Two host
// synchronisations per hop (its edges, its nodes), no others.
#include "cuda/gnnlab/gnnlab.h"

#include "bindings/cuda/notification.h"
#include "bindings/cuda/whole_batch.h"
#include "bindings/fault.h"
#include "bindings/gnnlab_args.h"
#include "cuda/common/scan.h"

namespace gnnbench::cuda {
namespace {

struct Task {
  Tensor indptr, indices, seeds;
  std::vector<int64_t> fanouts;
  HopDraws draws;
  bool only_new, with_positions;
  Tensor table;
  int64_t version;
};

template <class Id>
Tensor name_nodes(const OnDevice& on, const HopEdges& edges, const Tensor& known, bool seeds,
                  const VersionedTable& table, int64_t num_nodes, const Tensor& local) {
  const Launch& launch = on.launch();
  const int64_t n = edges.neighbors.numel();
  const size_t scan_bytes = scan_scratch_bytes<int32_t>(launch, n + 1);
  Scratch scratch;
  const size_t ranks = scratch.add<int32_t>(n + 2);
  const size_t faults_at = scratch.add<int32_t>(1);
  const size_t scan = scratch.add<char>(static_cast<int64_t>(scan_bytes));
  scratch.allocate(on);
  const VersionedHop<Id> hop{table,
                             num_nodes,
                             data<const Id>(edges.neighbors),
                             n,
                             static_cast<int32_t>(known.numel()),
                             data<int32_t>(local),
                             scratch.at<int32_t>(ranks)};
  int32_t* const seeds_faults = seeds ? scratch.at<int32_t>(faults_at) : nullptr;
  if (seeds) versioned_seeds(launch, table, data<const Id>(known), known.numel(), seeds_faults);
  versioned_insert(launch, hop, seeds_faults, edges.faults);
  exclusive_scan(launch, scratch.at<char>(scan), scan_bytes, hop.ranks, n + 1);

  // Host synchronisation, one per hop: the number of nodes determines the size of src_nodes.
  const int64_t* const numbers = read_numbers(on, {hop.ranks + n, 2});
  const int64_t fresh = numbers[0];
  throw_on_fault(static_cast<Fault>(numbers[1]), num_nodes);
  Tensor nodes = on.empty({known.numel() + fresh}, kIdType<Id>);
  copy_all(launch, {place(known, 0, nodes)});
  versioned_finish(launch, hop, data<Id>(nodes));
  return nodes;
}

template <class Id>
std::vector<Tensor> run(const OnDevice& on, Task& task) {
  const Csc<Id> graph = csc_of<Id>(on, task.indptr, task.indices);
  const bool walks = task.draws.spec.pick == Pick::kRandomWalk;
  const int64_t nothing = 0;
  Tensor need = host_numbers(&nothing, 1);
  int64_t& needed = data<int64_t>(need)[0];
  // The first degree pass checks the original seeds. Only later passes may use the narrowed ones.
  const Tensor& seeds = task.seeds;
  Vertices dst{seeds.data_ptr(), seeds.scalar_type() == ScalarType::Long};
  Tensor known = seeds.scalar_type() == kIdType<Id> ? seeds : torch::stable::to(seeds, kIdType<Id>);
  int64_t first = 0;  // index of the hop's first destination among the known nodes
  int64_t total = 0;
  std::vector<BatchHop> hops;
  for (size_t h = 0; h < task.fanouts.size(); ++h) {
    task.draws.hop = static_cast<uint32_t>(h);
    task.draws.fanout = static_cast<uint32_t>(task.fanouts[h]);
    const int64_t count = known.numel();
    HopEdges e = sample_one_hop(on, graph, dst, count - first, task.draws,
                                static_cast<int32_t>(task.only_new ? total : 0),
                                task.with_positions, h == 0 ? "seeds" : "indices");
    const int64_t edges = e.neighbors.numel();
    total += edges;
    if (task.only_new && total > INT32_MAX) {
      fail("a batch of ", total, " edges does not fit int32 blocks");
    }
    if (count + edges > INT32_MAX) {
      fail(count + edges, " ids in one hop do not fit int32 local ids");
    }
    needed = std::max(needed, versioned_need(count, edges, graph.num_nodes));
    if (needed > task.table.numel()) return {need};
    const VersionedTable table =
        versioned_table(data<int64_t>(task.table), task.table.numel(), task.version);
    Tensor local = on.empty({edges}, ScalarType::Int);
    Tensor nodes = name_nodes<Id>(on, e, known, h == 0, table, graph.num_nodes, local);
    trace_mark(on.launch(), Stage::kIdMap, static_cast<int>(h));
    hops.push_back({e.indptr, local, nodes, walks ? e.weights : e.positions, count - first});
    known = nodes;
    if (task.only_new) first = count;
    dst = Vertices{data<const Id>(known) + first, sizeof(Id) == 8};
  }
  std::vector<Tensor> out =
      answer(on, std::move(hops), task.only_new, walks || task.with_positions);
  out.push_back(need);
  return out;
}

std::vector<Tensor> gnnlab_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                std::vector<int64_t> fanouts, std::string pick,
                                std::vector<Tensor> tables, std::vector<int64_t> walk,
                                std::string frontier, int64_t key, int64_t batch,
                                bool with_positions, Tensor table, int64_t version) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cuda({{seeds, "seeds"}, {table, "table"}});
  check_seed_count(seeds.numel(), indptr.numel() - 1);
  check_versioned(table, version, indptr.numel() - 1);
  check_apart(table, "table", indptr, "indptr");
  check_apart(table, "table", indices, "indices");
  check_apart(table, "table", seeds, "seeds");
  const OnDevice on(seeds, "gnnlab");
  const HopDraws draws{pick_spec_on(on, pick, tables, walk, indices.numel()), 0,
                       static_cast<uint64_t>(key), 0, check_u32(batch, "batch", int64_t{1} << 32)};
  Task task{indptr,         indices,
            seeds,          fanouts_of(fanouts, draws.spec.pick),
            draws,          new_frontier_from_name(frontier),
            with_positions, table,
            version};
  return indices.scalar_type() == ScalarType::Int ? run<int32_t>(on, task) : run<int64_t>(on, task);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("gnnlab", TORCH_BOX(&gnnlab_cuda)); }

}  // namespace gnnbench::cuda
