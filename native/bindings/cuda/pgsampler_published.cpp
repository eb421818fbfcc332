// PGSampler as published: a whole batch in one sampling kernel, whose arrays of edges become blocks
// hop by hop, as DGL's (Fig. 5). The host waits for the kernel, then once per hop. A batch that did
// not fit is sampled again with larger capacities.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "bindings/cuda/notification.h"
#include "bindings/cuda/stages.h"
#include "bindings/fault.h"
#include "bindings/pgsampler_args.h"
#include "cuda/pgsampler/published.h"
#include "gnnbench/capacity.h"

namespace gnnbench::cuda {
namespace {

struct Batch {
  const Tensor& seeds;
  const std::vector<int64_t>& fanouts;
  bool with_positions;
};

// One attempt: its memory and its counters.
template <class Id>
struct Attempt {
  Scratch zeroed, arrays;
  PublishedJob<Id> job;
  PublishedControl control;
};

template <class Id>
Attempt<Id> attempt(const OnDevice& on, PublishedJob<Id> job, const Batch& batch,
                    const std::vector<int64_t>& capacity) {
  const Launch& launch = on.launch();
  const int64_t n = batch.seeds.numel();
  const Vertices seeds{batch.seeds.data_ptr(), batch.seeds.scalar_type() == ScalarType::Long};
  Attempt<Id> a;
  const size_t control_at = a.zeroed.template add<PublishedControl>(1);
  const size_t queue_at = a.zeroed.template add<unsigned long long>(capacity[0]);
  const size_t known_at = a.zeroed.template add<uint32_t>(job.hops * job.graph.num_nodes);
  std::vector<size_t> rows_at, cols_at, positions_at;
  for (uint32_t h = 0; h < job.hops; ++h) {
    rows_at.push_back(a.arrays.template add<Id>(capacity[h + 1]));
    cols_at.push_back(a.arrays.template add<Id>(capacity[h + 1]));
    positions_at.push_back(
        a.arrays.template add<int64_t>(batch.with_positions ? capacity[h + 1] : 0));
  }
  a.zeroed.allocate(on);
  a.arrays.allocate(on);
  job.control = a.zeroed.template at<PublishedControl>(control_at);
  job.queue = a.zeroed.template at<unsigned long long>(queue_at);
  job.known = a.zeroed.template at<uint32_t>(known_at);
  job.queue_capacity = static_cast<uint32_t>(capacity[0]);
  for (uint32_t h = 0; h < job.hops; ++h) {
    job.arrays[h] = {
        a.arrays.template at<Id>(rows_at[h]), a.arrays.template at<Id>(cols_at[h]),
        batch.with_positions ? a.arrays.template at<int64_t>(positions_at[h]) : nullptr,
        static_cast<uint32_t>(capacity[h + 1])};
  }
  a.job = job;

  GNNBENCH_CUDA_CALL(
      launch, cudaMemsetAsync(a.zeroed.template at<char>(0), 0, a.zeroed.bytes(), launch.stream));
  published_seeds(launch, job, seeds, n);
  trace_mark(launch, Stage::kPrepare, kWholeBatch);
  published_run(launch, job);
  trace_mark(launch, Stage::kPick, kWholeBatch);
  static_assert(sizeof(PublishedControl) % sizeof(int64_t) == 0);
  constexpr int kWords = sizeof(PublishedControl) / sizeof(int64_t);
  std::memcpy(&a.control, read_numbers(on, {reinterpret_cast<const int64_t*>(job.control), kWords}),
              sizeof(PublishedControl));
  trace_mark(launch, Stage::kPrepare, kWholeBatch);
  return a;
}

template <class Id>
std::vector<Tensor> blocks_of(const OnDevice& on, const Attempt<Id>& a, const Batch& batch,
                              int64_t attempts) {
  const PublishedControl& c = a.control;
  Tensor known = batch.seeds.scalar_type() == kIdType<Id>
                     ? batch.seeds
                     : torch::stable::to(batch.seeds, kIdType<Id>);
  std::vector<Tensor> out;
  std::vector<int64_t> stats{tasks_enqueued(c.state)};
  for (uint32_t h = 0; h < a.job.hops; ++h) {
    const HopArrays<Id>& arrays = a.job.arrays[h];
    const int64_t edges = static_cast<int64_t>(c.edges[h]);
    const CooBlock block =
        coo_block(on, known, GlobalEdges<Id>{arrays.rows, arrays.cols, arrays.positions, edges},
                  nullptr, a.job.graph.num_nodes, static_cast<int>(h));
    for (const Tensor& t : {block.indptr, block.local, block.src_nodes}) out.push_back(t);
    if (batch.with_positions) out.push_back(block.positions);
    known = block.src_nodes;
    stats.push_back(edges);
  }
  const int64_t enqueued = tasks_enqueued(c.state), processed = tasks_finished(c.state);
  stats.insert(stats.end(), {enqueued, processed, enqueued - processed, attempts});
  out.push_back(host_numbers(stats.data(), static_cast<int64_t>(stats.size())));
  return out;
}

// The worst case of the batch, at most kFirstTasks: tasks, then edges of each hop.
template <class Id>
std::vector<int64_t> guess(const PublishedJob<Id>& job, const Batch& batch) {
  std::vector<int64_t> capacity{0};
  int64_t rows = batch.seeds.numel();
  for (const int64_t fanout : batch.fanouts) {
    const int64_t most = rows > kMostTasks / fanout ? kMostTasks : rows * fanout;
    const int64_t edges = std::min(most, job.graph.num_edges);
    capacity[0] = std::min(capacity[0] + rows, kFirstTasks);
    capacity.push_back(std::min(edges, kFirstTasks));
    rows = std::min(job.graph.num_nodes, rows + edges);
  }
  return capacity;
}

template <class Id>
std::vector<Tensor> run(const OnDevice& on, const PublishedJob<Id>& job, const Batch& batch,
                        const std::vector<int64_t>& wanted) {
  const int64_t n = batch.seeds.numel();
  std::vector<int64_t> capacity = wanted.empty() ? guess(job, batch) : wanted;
  std::vector<int64_t> least(capacity.size(), 0);
  least[0] = n + 1;
  capacity[0] = std::max(capacity[0], least[0]);
  for (int64_t attempts = 1;; ++attempts) {
    std::optional<Attempt<Id>> a;
    try {
      a = attempt(on, job, batch, capacity);
    } catch (const OutOfMemory&) {
      if (!shrink(capacity, least)) throw;
      continue;
    }
    const Fault faults = static_cast<Fault>(a->control.faults);
    throw_on_fault(faults, job.graph.num_nodes);
    if (faults == Fault::kNone) {
      try {
        return blocks_of(on, *a, batch, attempts);
      } catch (const OutOfMemory&) {  // smaller scratch may still fit
        std::vector<int64_t> took{std::max<int64_t>(tasks_enqueued(a->control.state), n + 1)};
        for (size_t i = 1; i < capacity.size(); ++i) {
          took.push_back(static_cast<int64_t>(a->control.edges[i - 1]));
        }
        if (!frees(capacity, took)) throw;
        capacity = least = took;
        continue;
      }
    }
    for (size_t i = 0; i < capacity.size(); ++i) {
      const bool full = i == 0 ? has(faults, Fault::kTasksFull)
                               : static_cast<int64_t>(a->control.edges[i - 1]) > capacity[i];
      if (!full) continue;
      if (capacity[i] >= kMostTasks) {
        fail("the batch takes more than ", kMostTasks,
             " tasks or edges; use a smaller batch or fanouts");
      }
      least[i] = capacity[i] + 1;
      capacity[i] = std::min(kMostTasks, 2 * capacity[i] + 1024);
    }
  }
}

std::vector<Tensor> published_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                   std::vector<int64_t> fanouts, int64_t key, int64_t batch,
                                   bool with_positions, bool persistent, int64_t fetch_size,
                                   std::vector<int64_t> capacity) {
  check_csc(indptr, indices);
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cuda({{seeds, "seeds"}});
  check_seed_count(seeds.numel(), indptr.numel() - 1);
  const OnDevice on(seeds, "pgsampler_as_published");
  const uint32_t fetch = check_pgsampler(seeds, fanouts, fetch_size, {});
  check_capacity(capacity, fanouts.size() + 1, "(tasks, then edges of each hop)");
  fanouts = fanouts_of(fanouts, Pick::kReservoir);
  const Batch what{seeds, fanouts, with_positions};
  const uint32_t number = check_u32(batch, "batch", int64_t{1} << 32);
  const auto go = [&](auto id) {
    using Id = decltype(id);
    PublishedJob<Id> job{};
    job.graph = csc_of<Id>(on, indptr, indices);
    job.key = static_cast<uint64_t>(key);
    job.batch = number;
    job.hops = static_cast<uint32_t>(fanouts.size());
    job.fetch_size = fetch;
    job.persistent = persistent;
    for (size_t h = 0; h < fanouts.size(); ++h) job.fanouts[h] = static_cast<uint32_t>(fanouts[h]);
    return run<Id>(on, job, what, capacity);
  };
  return indices.scalar_type() == ScalarType::Int ? go(int32_t{}) : go(int64_t{});
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("pgsampler_as_published", TORCH_BOX(&published_cuda));
}

}  // namespace gnnbench::cuda
