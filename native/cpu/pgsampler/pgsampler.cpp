#include "cpu/pgsampler/pgsampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <thread>

#include "cpu/common/parallel.h"
#include "cpu/pick/row_draws.h"

namespace gnnbench {

TaskQueue::TaskQueue(int64_t max_tasks)
    : segments_(static_cast<size_t>(max_tasks >> kSegmentLog2) + 1) {}

TaskQueue::~TaskQueue() {
  for (std::atomic<TaskSlot*>& segment : segments_) delete[] segment.load();
}

TaskSlot* TaskQueue::find(uint64_t slot) const {
  const uint64_t segment = slot >> kSegmentLog2;
  if (segment >= segments_.size()) return nullptr;
  TaskSlot* first = segments_[segment].load(std::memory_order_acquire);
  return first ? first + (slot & (kSegment - 1)) : nullptr;
}

TaskSlot& TaskQueue::make(uint64_t slot) {
  if (TaskSlot* found = find(slot)) return *found;
  std::atomic<TaskSlot*>& segment = segments_[slot >> kSegmentLog2];
  TaskSlot* own = new TaskSlot[kSegment]();
  TaskSlot* first = nullptr;
  if (segment.compare_exchange_strong(first, own, std::memory_order_acq_rel)) {
    first = own;
  } else {
    delete[] own;
  }
  return first[slot & (kSegment - 1)];
}

// Data of one thread. Results of a row are contiguous.
template <class Id>
struct alignas(64) TaskSampler<Id>::Worker {
  uint32_t number;
  std::vector<Id> neighbors;
  std::vector<int64_t> positions;
  std::vector<Id> nodes;                      // vertices that this worker met first
  std::vector<uint32_t> picks;                // of one row, plus fisher_yates' scratch
  std::vector<uint64_t> children;             // of one task
  std::array<int64_t, kMaxTaskHops> edges{};  // by hop
};

template <class Id>
TaskSampler<Id>::TaskSampler(const Csc<Id>& graph, const HopDraws& draws,
                             const std::vector<int64_t>& fanouts, bool with_positions)
    : graph_(graph),
      draws_(draws),
      fanouts_(fanouts),
      with_positions_(with_positions),
      layout_(KnownLayout::of(static_cast<int>(fanouts.size()))),
      known_(new std::atomic<uint32_t>[layout_.words(graph.num_nodes)]()),
      queue_(graph.num_nodes * static_cast<int64_t>(fanouts.size())) {}

template <class Id>
TaskSampler<Id>::~TaskSampler() = default;

// Marks a vertex as a source of `hop`. Algorithm 2: read first, then an atomic or. Sets `fresh` if
// the vertex has a task at the next hop that is not pushed yet. Returns whether it is the first
// visit.
template <class Id>
bool TaskSampler<Id>::meet(Worker& worker, Id vertex, uint32_t hop, bool& fresh) {
  const bool last = hop + 1 == fanouts_.size();
  std::atomic<uint32_t>& word = known_[layout_.word(vertex)];
  const uint32_t shift = layout_.shift(vertex), bit = 1u << (hop + 1);
  uint32_t bits = layout_.bits(word.load(std::memory_order_relaxed), shift);
  fresh = false;
  // A source of the last hop has no task, so only whether the vertex was visited before matters.
  if (last ? bits != 0 : (bits & bit) != 0) return false;
  bits = layout_.bits(word.fetch_or(bit << shift, std::memory_order_relaxed), shift);
  fresh = !last && (bits & bit) == 0;
  if (bits != 0) return false;
  worker.nodes.push_back(vertex);
  return true;
}

// Counts the tasks as enqueued, which reserves their slots, then publishes each.
template <class Id>
void TaskSampler<Id>::push(const std::vector<uint64_t>& words) {
  if (words.empty()) return;
  uint64_t slot =
      tasks_enqueued(state_.fetch_add(words.size() * kOneEnqueued, std::memory_order_relaxed));
  for (const uint64_t word : words) {
    queue_.make(slot++).word.store(word, std::memory_order_release);
  }
}

template <class Id>
bool TaskSampler<Id>::process(Worker& worker, uint64_t word, TaskSlot& slot) {
  HopDraws draws = draws_;
  draws.hop = task_hop(word);
  draws.fanout = static_cast<uint32_t>(fanouts_[draws.hop]);
  const int64_t vertex = task_vertex(word);
  CscRow row;
  if (!graph_.read_row(vertex, row)) {
    box_.report(Fault::kBadRow, vertex);
    return false;
  }
  const auto [begin, degree] = row;
  const uint32_t count = pick_count(draws.spec, begin, degree, draws.fanout);
  const bool all = takes_all(draws.spec.pick, degree, draws.fanout);
  worker.edges[draws.hop] += count;
  if (worker.edges[draws.hop] > INT32_MAX) {
    box_.report(Fault::kEdgesFull);
    return false;
  }
  if (count > 0 && !all) {
    const size_t moved = draws.spec.pick == Pick::kFisherYates ? 2 * size_t{count} : 0;
    if (worker.picks.size() < count + moved) worker.picks.resize(count + moved);
    uint32_t* picks = worker.picks.data();
    pick_row(draws.spec, begin, degree, draws.fanout, WindowedDraws(draws.of(vertex)), picks,
             picks + count);
  }
  slot.worker = worker.number;
  slot.count = count;
  slot.at = static_cast<int64_t>(worker.neighbors.size());
  worker.children.clear();
  bool fresh = false;
  for (uint32_t s = 0; s < count; ++s) {
    const uint32_t position = all ? s : worker.picks[s];
    if (position >= degree) {
      box_.report(Fault::kBadTables);
      return false;
    }
    const Id neighbor = graph_.indices[begin + position];
    if (!graph_.has_node(neighbor)) {
      box_.report(Fault::kBadNeighbor);
      return false;
    }
    worker.neighbors.push_back(neighbor);
    if (with_positions_) worker.positions.push_back(begin + position);
    meet(worker, neighbor, draws.hop, fresh);
    if (fresh) worker.children.push_back(task_word(neighbor, draws.hop + 1));
  }
  if (draws.hop + 1 < fanouts_.size()) {  // a finished task's vertex continues at the next hop
    meet(worker, static_cast<Id>(vertex), draws.hop, fresh);
    if (fresh) worker.children.push_back(task_word(vertex, draws.hop + 1));
  }
  push(worker.children);
  // The children are already counted, so enqueued equals finished only at the end.
  state_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Only a running worker holds tickets, and a task's slot lies behind its parent's. So a worker
// waits here for a task that another running worker is about to push, or for the end.
template <class Id>
void TaskSampler<Id>::work(Worker& worker, uint32_t fetch_size) {
  for (uint32_t take = 1;; take = fetch_size) {
    const uint64_t first = head_.fetch_add(take, std::memory_order_relaxed);
    for (uint64_t ticket = first; ticket < first + take; ++ticket) {
      for (;;) {
        TaskSlot* slot = queue_.find(ticket);
        const uint64_t word = slot ? slot->word.load(std::memory_order_acquire) : 0;
        if (box_.any()) return;
        if (word != 0) {
          if (!process(worker, word, *slot)) return;
          break;
        }
        if (all_finished(state_.load(std::memory_order_relaxed))) return;
        std::this_thread::yield();
      }
    }
  }
}

// Algorithm 1 as printed: the tail moves before the slot is written, a slot is read whether it was
// written or not, and a worker that leaves drops indices that no other worker takes.
template <class Id>
void TaskSampler<Id>::work_as_printed(Worker& worker, uint32_t index, uint32_t fetch_size) {
  std::vector<uint64_t> tasks;
  uint32_t take = 1;
  while (index < tasks_enqueued(state_.load())) {
    tasks.clear();
    for (uint32_t i = 0; i < take; ++i) {
      const TaskSlot* slot = queue_.find(index + i);
      tasks.push_back(slot ? slot->word.load(std::memory_order_acquire) : 0);
    }
    for (uint32_t i = 0; i < take; ++i) {
      if (tasks[i] == 0) {
        stale_.fetch_add(1, std::memory_order_relaxed);
      } else if (!process(worker, tasks[i], *queue_.find(index + i))) {
        return;
      }
    }
    if (box_.any()) return;
    index = head_.fetch_add(fetch_size);
    take = fetch_size;
  }
}

template <class Id>
FaultAt TaskSampler<Id>::run(const Id* seeds, int64_t n, uint32_t fetch_size, bool as_printed,
                             int64_t workers) {
  seeds_.assign(seeds, seeds + n);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t shift = layout_.shift(seeds[i]);
    const uint32_t before = known_[layout_.word(seeds[i])].fetch_or(1u << shift);
    if (layout_.bits(before, shift) != 0) return {Fault::kRepeatedSeed};
    queue_.make(i).word.store(task_word(seeds[i], 0));
  }
  if (fanouts_[0] > INT32_MAX / std::max<int64_t>(n, 1)) {
    int64_t edges = 0;
    for (int64_t i = 0; i < n; ++i) {
      CscRow row;
      if (!graph_.read_row(seeds[i], row)) return {Fault::kBadRow, seeds[i]};
      edges += pick_count(draws_.spec, row.begin, row.degree, static_cast<uint32_t>(fanouts_[0]));
    }
    if (edges > INT32_MAX) return {Fault::kEdgesFull};
  }
  state_.store(static_cast<uint64_t>(n) * kOneEnqueued);
  head_.store(as_printed ? static_cast<uint32_t>(workers) : 0);
  for (int64_t w = 0; w < workers; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->number = static_cast<uint32_t>(w);
  }
  struct Context {
    TaskSampler* sampler;
    uint32_t fetch_size;
    bool as_printed;
  } context{this, fetch_size, as_printed};
  run_workers(
      workers,
      [](void* p, int64_t w) {
        const auto* c = static_cast<Context*>(p);
        Worker& worker = *c->sampler->workers_[w];
        try {
          if (c->as_printed) {
            c->sampler->work_as_printed(worker, static_cast<uint32_t>(w), c->fetch_size);
          } else {
            c->sampler->work(worker, c->fetch_size);
          }
        } catch (...) {  // the others wait for this worker's tasks
          c->sampler->box_.report_exception();
        }
      },
      &context);
  if (const FaultAt found = box_.get(); found.fault != Fault::kNone) return found;

  sources_.assign(fanouts_.size() + 1, 0);
  edges_.assign(fanouts_.size(), 0);
  sources_[0] = n;
  for (const auto& worker : workers_) {
    for (const Id vertex : worker->nodes) ++sources_[met_at(vertex)];
  }
  for (size_t h = 0; h < fanouts_.size(); ++h) sources_[h + 1] += sources_[h];
  for (uint64_t i = 0, tasks = tasks_enqueued(state_.load()); i < tasks; ++i) {
    const TaskSlot& slot = *queue_.find(i);
    edges_[task_hop(slot.word.load(std::memory_order_relaxed))] += slot.count;
  }
  return {};
}

// First hop at which a vertex is a source; 0 for a seed.
template <class Id>
uint32_t TaskSampler<Id>::met_at(Id vertex) const {
  const uint32_t word = known_[layout_.word(vertex)].load(std::memory_order_relaxed);
  return static_cast<uint32_t>(std::countr_zero(layout_.bits(word, layout_.shift(vertex))));
}

template <class Id>
TaskCounts TaskSampler<Id>::counts() const {
  TaskCounts out{tasks_enqueued(state_.load()), tasks_finished(state_.load()), stale_.load(), 0};
  for (const auto& worker : workers_) out.nodes += static_cast<int64_t>(worker->nodes.size());
  return out;
}

template <class Id>
int64_t TaskSampler<Id>::sources(int hop) const {
  return sources_[hop + 1];
}

template <class Id>
int64_t TaskSampler<Id>::edges(int hop) const {
  return edges_[hop];
}

template <class Id>
void TaskSampler<Id>::local_ids(int32_t* local_of, Id* src_nodes) {
  std::vector<int64_t> next(sources_.size());
  for (size_t h = 1; h < next.size(); ++h) next[h] = sources_[h - 1];
  const auto name = [&](Id vertex, int64_t local) {
    local_of[vertex] = static_cast<int32_t>(local);
    src_nodes[local] = vertex;
  };
  for (size_t i = 0; i < seeds_.size(); ++i) name(seeds_[i], static_cast<int64_t>(i));
  for (const auto& worker : workers_) {
    for (const Id vertex : worker->nodes) name(vertex, next[met_at(vertex)]++);
  }
}

template <class Id>
void TaskSampler<Id>::block(int hop, const int32_t* local_of, int32_t* indptr, int32_t* indices,
                            int64_t* positions) const {
  const int64_t rows = sources(hop - 1);
  std::fill(indptr, indptr + rows + 1, 0);  // as_printed can lose rows
  const uint64_t tasks = tasks_enqueued(state_.load());
  const auto of_hop = [&](const TaskSlot& slot, int64_t& row) {
    const uint64_t word = slot.word.load(std::memory_order_relaxed);
    if (task_hop(word) != static_cast<uint32_t>(hop)) return false;
    row = local_of[task_vertex(word)];
    return true;
  };
  int64_t row = 0;
  for (uint64_t i = 0; i < tasks; ++i) {
    const TaskSlot& slot = *queue_.find(i);
    if (of_hop(slot, row)) indptr[row + 1] = static_cast<int32_t>(slot.count);
  }
  for (int64_t i = 0; i < rows; ++i) indptr[i + 1] += indptr[i];
  parallel_chunks(static_cast<int64_t>(tasks), 1024, [&](int64_t, int64_t begin, int64_t end) {
    int64_t to = 0;
    for (int64_t i = begin; i < end; ++i) {
      const TaskSlot& slot = *queue_.find(static_cast<uint64_t>(i));
      if (slot.count == 0 || !of_hop(slot, to)) continue;
      const Worker& from = *workers_[slot.worker];
      for (uint32_t e = 0; e < slot.count; ++e) {
        indices[indptr[to] + e] = local_of[from.neighbors[slot.at + e]];
        if (positions) positions[indptr[to] + e] = from.positions[slot.at + e];
      }
    }
  });
}

template class TaskSampler<int32_t>;
template class TaskSampler<int64_t>;

}  // namespace gnnbench
