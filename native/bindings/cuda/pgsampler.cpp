// PGSampler: a whole batch by one sampling kernel. One host synchronisation, which reads the sizes;
// a batch that did not fit is done again, larger.
#include "cuda/pgsampler/pgsampler.h"

#include <algorithm>
#include <vector>

#include "bindings/cuda/stages.h"
#include "bindings/fault.h"
#include "bindings/pgsampler_args.h"

namespace gnnbench::cuda {
namespace {

constexpr int64_t kMost = INT32_MAX;
constexpr int64_t kFirstGuess = int64_t{1} << 24;  // entries, where the bound is above it

// What to allocate for, in the order of the argument `capacity`.
struct Capacity {
  int64_t queue, edges, nodes;
};

// The most that a batch can take, or kFirstGuess. Rows that are split take a task per kChunkDraws
// draws, and a row's draws are fewer than its edges.
Capacity first_capacity(int64_t num_nodes, int64_t num_edges, int64_t seeds, const PickSpec& spec,
                        const std::vector<int64_t>& fanouts, bool split_hubs) {
  const auto times = [](int64_t a, int64_t b) { return a > kMost / b ? kMost : a * b; };
  const bool each_once = without_replacement(spec.pick);
  const int64_t thrice = spec.pick == Pick::kFisherYates ? 3 : 1;
  int64_t rows = seeds;
  Capacity most{0, 0, 0};
  for (const int64_t fanout : fanouts) {
    int64_t edges = times(rows, fanout);
    if (each_once) edges = std::min(edges, num_edges);
    most.queue += rows;
    if (split_hubs && spec.pick == Pick::kReservoir) {
      most.queue += std::min<int64_t>(2 * (num_edges / kChunkDraws), int64_t{1} << 18);
    }
    most.edges += edges * thrice;
    rows = std::min(num_nodes, rows + edges);
  }
  most.nodes = std::min(num_nodes, rows);
  const auto guess = [](int64_t bound) { return std::min(bound, kFirstGuess); };
  return {std::max(guess(most.queue), seeds + 1), guess(most.edges), guess(most.nodes)};
}

// Doubles what was full. False where it cannot grow.
bool grow(Capacity& capacity, Fault full) {
  bool can = true;
  const auto twice = [&can](int64_t& entries) {
    can = can && entries < kMost;
    entries = std::min(kMost, 2 * entries + 1024);
  };
  if (has(full, Fault::kTasksFull)) twice(capacity.queue);
  if (has(full, Fault::kEdgesFull)) twice(capacity.edges);
  if (has(full, Fault::kNodesFull)) twice(capacity.nodes);
  return can;
}

TaskSchedule schedule_of(const std::string& variant) {
  switch (pgsampler_variant(variant)) {
    case PgVariant::kPersistent: return TaskSchedule::kPersistent;
    case PgVariant::kFusion: return TaskSchedule::kFusion;
    default: return TaskSchedule::kAsPrinted;
  }
}

// Everything of one attempt that lives on the device.
template <class Id>
struct Attempt {
  Scratch zeroed, rest;
  Tensor indptr, indices, src_nodes, positions;
  TaskControl control;  // read back
};

template <class Id>
Attempt<Id> attempt(const OnDevice& on, TaskJob<Id> job, Vertices seeds, int64_t num_seeds,
                    const Capacity& capacity, TaskSchedule schedule, bool with_positions) {
  const Launch& launch = on.launch();
  Attempt<Id> a;
  const int64_t indptr_capacity = capacity.queue + job.hops;
  const bool as_printed = schedule == TaskSchedule::kAsPrinted;

  const size_t control_at = a.zeroed.template add<TaskControl>(1);
  const size_t queue_at = a.zeroed.template add<unsigned long long>(capacity.queue);
  const size_t known_at = a.zeroed.template add<uint32_t>(job.layout.words(job.graph.num_nodes));
  Scratch& of_rows = as_printed ? a.zeroed : a.rest;  // a lost task's row counts as empty
  const size_t rows_at = of_rows.template add<TaskRow>(capacity.queue);
  const size_t neighbors_at = a.rest.template add<Id>(capacity.edges);
  const size_t positions_at = a.rest.template add<int64_t>(with_positions ? capacity.edges : 0);
  const size_t local_at = a.rest.template add<int32_t>(job.graph.num_nodes);
  const size_t scan_bytes = scan_scratch_bytes<int32_t>(launch, indptr_capacity);
  const size_t scan_at = a.rest.template add<char>(static_cast<int64_t>(scan_bytes));
  a.zeroed.allocate(on);
  a.rest.allocate(on);
  a.indptr = on.empty({indptr_capacity}, ScalarType::Int);
  // The list of nodes is done with before the first index is written: they share memory.
  const int64_t node_words = capacity.nodes * static_cast<int64_t>(sizeof(Id) / sizeof(int32_t));
  a.indices = on.empty({std::max(capacity.edges, node_words)}, ScalarType::Int);
  a.src_nodes = on.empty({num_seeds + capacity.nodes}, kIdType<Id>);
  if (with_positions) a.positions = on.empty({capacity.edges}, ScalarType::Long);

  job.known = a.zeroed.template at<uint32_t>(known_at);
  job.queue = a.zeroed.template at<unsigned long long>(queue_at);
  job.rows = of_rows.template at<TaskRow>(rows_at);
  job.queue_capacity = static_cast<uint32_t>(capacity.queue);
  job.neighbors = a.rest.template at<Id>(neighbors_at);
  job.positions = with_positions ? a.rest.template at<int64_t>(positions_at) : nullptr;
  job.edge_capacity = static_cast<uint32_t>(capacity.edges);
  job.nodes = reinterpret_cast<Id*>(a.indices.data_ptr());
  job.node_capacity = static_cast<uint32_t>(capacity.nodes);
  job.control = a.zeroed.template at<TaskControl>(control_at);
  const TaskBlocks<Id> blocks{a.rest.template at<int32_t>(local_at),
                              data<Id>(a.src_nodes),
                              data<int32_t>(a.indptr),
                              indptr_capacity,
                              data<int32_t>(a.indices),
                              with_positions ? data<int64_t>(a.positions) : nullptr,
                              as_printed};

  GNNBENCH_CUDA_CALL(
      launch, cudaMemsetAsync(a.zeroed.template at<char>(0), 0, a.zeroed.bytes(), launch.stream));
  pgsampler_seeds(launch, job, seeds, num_seeds, blocks.local_of, blocks.src_nodes);
  trace_mark(launch, Stage::kPrepare, kWholeBatch);
  pgsampler_run(launch, job, schedule);
  trace_mark(launch, Stage::kPick, kWholeBatch);
  pgsampler_local_ids(launch, job, blocks);
  trace_mark(launch, Stage::kIdMap, kWholeBatch);
  pgsampler_blocks(launch, job, blocks, a.rest.template at<char>(scan_at), scan_bytes);
  trace_mark(launch, Stage::kBlock, kWholeBatch);
  on.read_back(job.control, &a.control, 1);  // the one host synchronisation
  trace_mark(launch, Stage::kPrepare, kWholeBatch);
  return a;
}

// Rows that the blocks of a batch have.
int64_t rows_of(const TaskControl& control, int64_t hops) {
  int64_t known = 0, rows = 0;
  for (int64_t h = 0; h < hops; ++h) rows += known += control.found[h];
  return rows;
}

template <class Id>
std::vector<Tensor> answer(Attempt<Id>& a, int64_t hops, bool with_positions, int64_t attempts) {
  const TaskControl& c = a.control;
  std::vector<Tensor> out;
  int64_t known = 0, row = 0, edge = 0;
  for (int64_t h = 0; h < hops; ++h) {
    known += c.found[h];
    const int64_t edges = static_cast<int64_t>(c.hop_edges[h]);
    out.push_back(torch::stable::narrow(a.indptr, 0, row, known + 1));
    out.push_back(torch::stable::narrow(a.indices, 0, edge, edges));
    out.push_back(torch::stable::narrow(a.src_nodes, 0, 0, known + c.found[h + 1]));
    if (with_positions) out.push_back(torch::stable::narrow(a.positions, 0, edge, edges));
    row += known + 1;
    edge += edges;
  }
  out.push_back(pgsampler_stats({tasks_enqueued(c.state), static_cast<int64_t>(c.edges), c.nodes},
                                tasks_enqueued(c.state) - c.chunks,
                                tasks_finished(c.state) - c.chunks, c.stale, c.chunks, attempts));
  return out;
}

template <class Id>
std::vector<Tensor> run(const OnDevice& on, const Csc<Id>& graph, const PickSpec& spec,
                        const Tensor& seeds, const std::vector<int64_t>& fanouts, uint64_t key,
                        uint32_t batch, bool with_positions, TaskSchedule schedule,
                        uint32_t fetch_size, bool split_hubs, const std::vector<int64_t>& wanted) {
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

  Capacity capacity =
      first_capacity(graph.num_nodes, graph.num_edges, n, spec, fanouts, split_hubs);
  if (!wanted.empty()) capacity = {std::max(wanted[0], n + 1), wanted[1], wanted[2]};
  for (int64_t attempts = 1;; ++attempts) {
    Attempt<Id> a =
        attempt(on, job, Vertices{seeds.data_ptr(), seeds.scalar_type() == ScalarType::Long}, n,
                capacity, schedule, with_positions);
    Fault full = static_cast<Fault>(a.control.faults);
    tell(full, graph.num_nodes);
    // As printed, a vertex whose task was lost is a destination all the same.
    if (full == Fault::kNone && rows_of(a.control, hops) > capacity.queue) full = Fault::kTasksFull;
    if (full == Fault::kNone) return answer(a, hops, with_positions, attempts);
    if (!grow(capacity, full)) {
      fail("the batch takes more than ", kMost, " tasks or edges; take a smaller one or fanouts");
    }
  }
}

std::vector<Tensor> pgsampler_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                   std::vector<int64_t> fanouts, std::string pick,
                                   std::vector<Tensor> tables, std::vector<int64_t> walk,
                                   int64_t key, int64_t batch, bool with_positions,
                                   std::string variant, int64_t fetch_size, std::string hubs,
                                   std::vector<int64_t> capacity) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cuda({{seeds, "seeds"}});
  const TaskSchedule schedule = schedule_of(variant);
  const uint32_t fetch = check_pgsampler(seeds, fanouts, fetch_size, capacity);
  const bool split_hubs = splits_hubs(hubs);
  const OnDevice on(seeds, "pgsampler");
  const PickSpec spec = pick_spec_on(on, pick, tables, walk, indices.numel());
  check_pgsampler_pick(spec.pick);
  const uint32_t number = check_u32(batch, "batch", int64_t{1} << 32);
  const auto go = [&](auto id) {
    using Id = decltype(id);
    return run<Id>(on, csc_of<Id>(on, indptr, indices), spec, seeds, fanouts,
                   static_cast<uint64_t>(key), number, with_positions, schedule, fetch, split_hubs,
                   capacity);
  };
  return indices.scalar_type() == ScalarType::Int ? go(int32_t{}) : go(int64_t{});
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("pgsampler", TORCH_BOX(&pgsampler_cuda)); }

}  // namespace gnnbench::cuda
