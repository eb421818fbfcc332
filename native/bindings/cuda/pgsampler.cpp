// PGSampler: a whole batch in one sampling kernel. One host synchronisation reads the sizes as soon
// as sampling is complete, while offsets are computed. A batch that did not fit is sampled again
// with larger capacities.
//
// Scratch is sized in advance, and torch gets it back when the call returns. The returned tensors
// have the sizes read and are written directly, except the offsets, which are copied after the last
// kernel:
//
//   indptr h [rows + 1]   indices h [edges]   positions h [edges]   nodes [all], of which src_nodes
//                                                                   of each hop is a prefix
#include "cuda/pgsampler/pgsampler.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "bindings/cuda/notification.h"
#include "bindings/cuda/stages.h"
#include "bindings/fault.h"
#include "bindings/pgsampler_args.h"
#include "cuda/common/copies.h"
#include "cuda/common/scan.h"
#include "gnnbench/capacity.h"

namespace gnnbench::cuda {
namespace {

TaskSchedule schedule_of(const std::string& variant) {
  switch (pgsampler_variant(variant)) {
    case PgVariant::kPersistent: return TaskSchedule::kPersistent;
    case PgVariant::kFusion: return TaskSchedule::kFusion;
    case PgVariant::kNonPersistent: return TaskSchedule::kNonPersistent;
    default: return TaskSchedule::kAsPrinted;
  }
}

// One attempt: its memory and its results.
template <class Id>
struct Attempt {
  Scratch zeroed, rest;
  TaskJob<Id> job;
  TaskRanks ranks;
  TaskControl control;
};

template <class Id>
Attempt<Id> attempt(const OnDevice& on, TaskJob<Id> job, Vertices seeds, int64_t num_seeds,
                    const std::vector<int64_t>& capacity, TaskSchedule schedule, TaskWorker worker,
                    bool with_positions) {
  const Launch& launch = on.launch();
  const int64_t tasks = capacity[kTasks], edges = capacity[kTaskEdges];
  const int64_t groups = KnownLayout::groups(job.graph.num_nodes);
  const int64_t sums = pgsampler_sums(groups, job.hops);
  Attempt<Id> a;
  const int64_t indptr_capacity = tasks + job.hops;
  const bool as_printed = schedule == TaskSchedule::kAsPrinted;

  const size_t control_at = a.zeroed.template add<TaskControl>(1);
  const size_t queue_at = a.zeroed.template add<unsigned long long>(tasks);
  const size_t known_at = a.zeroed.template add<uint32_t>(groups * job.layout.group_words());
  Scratch& of_rows = as_printed ? a.zeroed : a.rest;  // a lost task's row counts as empty
  const size_t rows_at = of_rows.template add<TaskRow>(tasks);
  const size_t neighbors_at = a.rest.template add<Id>(edges);
  const size_t drawn_at = a.rest.template add<int64_t>(with_positions ? edges : 0);
  const size_t sums_at = a.rest.template add<int32_t>(sums);
  const size_t seeds_at = a.rest.template add<int32_t>(num_seeds);
  const size_t indptr_at = a.rest.template add<int32_t>(indptr_capacity);
  const size_t scan_bytes = std::max(scan_scratch_bytes<int32_t>(launch, sums),
                                     scan_scratch_bytes<int32_t>(launch, indptr_capacity));
  const size_t scan_at = a.rest.template add<char>(static_cast<int64_t>(scan_bytes));
  a.zeroed.allocate(on);
  a.rest.allocate(on);

  job.known = a.zeroed.template at<uint32_t>(known_at);
  job.queue = a.zeroed.template at<unsigned long long>(queue_at);
  job.rows = of_rows.template at<TaskRow>(rows_at);
  job.queue_capacity = static_cast<uint32_t>(tasks);
  job.neighbors = a.rest.template at<Id>(neighbors_at);
  job.positions = with_positions ? a.rest.template at<int64_t>(drawn_at) : nullptr;
  job.edge_capacity = static_cast<uint32_t>(edges);
  job.control = a.zeroed.template at<TaskControl>(control_at);
  a.job = job;
  a.ranks = {seeds,
             num_seeds,
             groups,
             a.rest.template at<int32_t>(sums_at),
             a.rest.template at<int32_t>(seeds_at),
             a.rest.template at<int32_t>(indptr_at),
             indptr_capacity,
             as_printed,
             a.rest.template at<char>(scan_at),
             scan_bytes};

  static_assert(sizeof(TaskControl) % sizeof(int64_t) == 0);
  constexpr int kWords = sizeof(TaskControl) / sizeof(int64_t);
  GNNBENCH_CUDA_CALL(
      launch, cudaMemsetAsync(a.zeroed.template at<char>(0), 0, a.zeroed.bytes(), launch.stream));
  pgsampler_seeds(launch, job, seeds, num_seeds);
  trace_mark(launch, Stage::kPrepare, kWholeBatch);
  pgsampler_run(launch, job, schedule, worker);
  trace_mark(launch, Stage::kPick, kWholeBatch);
  pgsampler_local_ids(launch, job, a.ranks);
  NotificationBuffer& box = NotificationBuffer::of(on);
  post(launch, {reinterpret_cast<const int64_t*>(job.control), kWords}, box.open(launch, kWords));
  trace_mark(launch, Stage::kIdMap, kWholeBatch);
  pgsampler_offsets(launch, job, a.ranks);
  trace_mark(launch, Stage::kBlock, kWholeBatch);
  std::memcpy(&a.control, box.wait(launch), sizeof(TaskControl));  // the only host synchronisation
  trace_mark(launch, Stage::kPrepare, kWholeBatch);
  return a;
}

// Number of rows in the blocks of a batch.
int64_t rows_of(const TaskControl& control, int64_t hops) {
  int64_t rows = 0;
  for (int64_t h = 0; h < hops; ++h) rows += control.known[h];
  return rows;
}

template <class Id>
std::vector<Tensor> answer(const OnDevice& on, const Attempt<Id>& a, int64_t hops,
                           int64_t attempts) {
  const TaskControl& c = a.control;
  const Tensor nodes = on.empty({c.known[hops]}, kIdType<Id>);
  TaskBlocks<Id> blocks{data<Id>(nodes), {}, {}};
  std::vector<Copy> copies;
  std::vector<Tensor> out;
  const int32_t* indptr = a.ranks.indptr;
  for (int64_t h = 0; h < hops; ++h) {
    const int64_t rows = c.known[h], edges = c.hop_edges[h];
    out.push_back(on.empty({rows + 1}, ScalarType::Int));
    copies.push_back({indptr, out.back().data_ptr(), (rows + 1) * int64_t{sizeof(int32_t)}});
    indptr += rows + 1;
    out.push_back(on.empty({edges}, ScalarType::Int));
    blocks.indices[h] = data<int32_t>(out.back());
    out.push_back(h + 1 == hops ? nodes : view(nodes, 0, c.known[h + 1]));
    if (a.job.positions == nullptr) continue;
    out.push_back(on.empty({edges}, ScalarType::Long));
    blocks.positions[h] = data<int64_t>(out.back());
  }
  pgsampler_blocks(on.launch(), a.job, a.ranks, blocks);
  copy_all(on.launch(), copies);
  trace_mark(on.launch(), Stage::kBlock, kWholeBatch);
  out.push_back(pgsampler_stats({tasks_enqueued(c.state), static_cast<int64_t>(c.edges)},
                                tasks_enqueued(c.state) - c.chunks,
                                tasks_finished(c.state) - c.chunks, c.stale, c.chunks, attempts));
  return out;
}

// A split row has one task per kChunkDraws draws, and a row has fewer draws than edges.
int64_t most_chunks(Pick pick, bool split_hubs, int64_t num_edges) {
  if (pick != Pick::kReservoir || !split_hubs) return 0;
  return std::min<int64_t>(2 * (num_edges / kChunkDraws), int64_t{1} << 18);
}

template <class Id>
std::vector<Tensor> run(const OnDevice& on, const Csc<Id>& graph, const PickSpec& spec,
                        const Tensor& seeds, const std::vector<int64_t>& fanouts, uint64_t key,
                        uint32_t batch, bool with_positions, TaskSchedule schedule,
                        TaskWorker worker, uint32_t fetch_size, bool split_hubs,
                        const std::vector<int64_t>& wanted) {
  const int64_t n = seeds.numel(), hops = static_cast<int64_t>(fanouts.size());
  TaskJob<Id> job{};
  job.graph = graph;
  job.spec = spec;
  job.key = key;
  job.batch = batch;
  job.hops = static_cast<uint32_t>(hops);
  job.fetch_size = fetch_size;
  job.split_hubs = split_hubs;
  job.layout = KnownLayout::of(static_cast<int>(hops));
  for (int64_t h = 0; h < hops; ++h) job.fanouts[h] = static_cast<uint32_t>(fanouts[h]);

  const TaskWork work{graph.num_nodes,
                      graph.num_edges,
                      n,
                      fanouts,
                      without_replacement(spec.pick),
                      spec.pick == Pick::kFisherYates ? 3 : 1,
                      most_chunks(spec.pick, split_hubs, graph.num_edges)};
  std::vector<int64_t> capacity = wanted.empty() ? task_guess(work) : wanted;
  std::vector<int64_t> least{n + 1, 0};
  capacity[kTasks] = std::max(capacity[kTasks], n + 1);
  for (int64_t attempts = 1;; ++attempts) {
    std::optional<Attempt<Id>> a;
    try {
      a = attempt(on, job, Vertices{seeds.data_ptr(), seeds.scalar_type() == ScalarType::Long}, n,
                  capacity, schedule, worker, with_positions);
    } catch (const OutOfMemory&) {
      if (!shrink(capacity, least)) throw;
      continue;
    }
    const Fault faults = static_cast<Fault>(a->control.faults);
    throw_on_fault(faults, graph.num_nodes);
    // As printed, a vertex whose task was lost is still a destination.
    const bool fits = faults == Fault::kNone;
    const bool rows_fit = !fits || rows_of(a->control, hops) <= capacity[kTasks];
    const bool full[2] = {!rows_fit || has(faults, Fault::kTasksFull),
                          has(faults, Fault::kEdgesFull)};
    if (fits && rows_fit) {
      try {
        return answer(on, *a, hops, attempts);
      } catch (const OutOfMemory&) {  // smaller scratch may still fit
        const int64_t tasks = tasks_enqueued(a->control.state);
        const std::vector<int64_t> took{std::max({tasks, rows_of(a->control, hops), n + 1}),
                                        static_cast<int64_t>(a->control.edges)};
        if (!frees(capacity, took)) throw;
        capacity = least = took;
        continue;
      }
    }
    if (!grow(capacity, least, full)) {
      fail("the batch takes more than ", kMostTasks,
           " tasks or edges; use a smaller batch or fanouts");
    }
  }
}

std::vector<Tensor> pgsampler_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                   std::vector<int64_t> fanouts, std::string pick,
                                   std::vector<Tensor> tables, std::vector<int64_t> walk,
                                   int64_t key, int64_t batch, bool with_positions,
                                   std::string variant, int64_t fetch_size, std::string hubs,
                                   std::string worker, std::vector<int64_t> capacity) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cuda({{seeds, "seeds"}});
  check_seed_count(seeds.numel(), indptr.numel() - 1);
  const TaskSchedule schedule = schedule_of(variant);
  const bool split_hubs = splits_hubs(hubs);
  const TaskWorker team =
      pgsampler_by_block(worker, variant, hubs) ? TaskWorker::kBlock : TaskWorker::kWarp;
  const OnDevice on(seeds, "pgsampler");
  const PickSpec spec = pick_spec_on(on, pick, tables, walk, indices.numel());
  check_pgsampler_pick(spec.pick);
  const uint32_t fetch = check_pgsampler(seeds, fanouts, fetch_size, capacity);
  fanouts = fanouts_of(fanouts, spec.pick);
  const uint32_t number = check_u32(batch, "batch", int64_t{1} << 32);
  const auto go = [&](auto id) {
    using Id = decltype(id);
    return run<Id>(on, csc_of<Id>(on, indptr, indices), spec, seeds, fanouts,
                   static_cast<uint64_t>(key), number, with_positions, schedule, team, fetch,
                   split_hubs, capacity);
  };
  return indices.scalar_type() == ScalarType::Int ? go(int32_t{}) : go(int64_t{});
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("pgsampler", TORCH_BOX(&pgsampler_cuda)); }

}  // namespace gnnbench::cuda
