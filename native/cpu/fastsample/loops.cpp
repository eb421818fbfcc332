#include "cpu/fastsample/loops.h"

#include <algorithm>
#include <atomic>

#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int32_t kUnnamed = -1;
constexpr int32_t kListed = 0;  // until the lists are numbered; read by no one before

template <class F>
void on_each_worker(int64_t workers, const F& f) {
  run_workers(
      workers, [](void* p, int64_t worker) { (*static_cast<const F*>(p))(worker); },
      const_cast<F*>(&f));
}

}  // namespace

int64_t loop_workers(int64_t edges) {
  return std::clamp<int64_t>(num_chunks(edges, kLoopEdges), 1, num_threads());
}

template <class Id>
int64_t loop_claim(const LoopNames<Id>& t) {
  if (t.workers == 1) {
    int64_t idx = t.known;
    for (int64_t e = 0; e < t.edges; ++e) {
      const Id v = t.sampled[e];
      if (t.map[v] == kUnnamed) {
        t.fresh[idx - t.known] = v;
        t.map[v] = static_cast<int32_t>(idx++);
      }
      t.out[e] = t.map[v];
    }
    t.found[0] = idx - t.known;
    return idx;
  }
  on_each_worker(t.workers, [&](int64_t w) {
    Id* const fresh = t.fresh + t.first_edge(w);
    int64_t found = 0;
    for (int64_t e = t.first_edge(w), end = t.first_edge(w + 1); e < end; ++e) {
      const Id v = t.sampled[e];
      std::atomic_ref<int32_t> entry(t.map[v]);
      int32_t seen = entry.load(std::memory_order_relaxed);
      if (seen == kUnnamed &&
          entry.compare_exchange_strong(seen, kListed, std::memory_order_relaxed)) {
        fresh[found++] = v;
      }
    }
    t.found[w] = found;
  });
  int64_t total = t.known;
  for (int64_t w = 0; w < t.workers; ++w) total += t.found[w];
  return total;
}

template <class Id>
void loop_name(const LoopNames<Id>& t, Id* nodes) {
  if (t.workers == 1) {
    std::copy_n(t.fresh, t.found[0], nodes + t.known);
    return;
  }
  on_each_worker(t.workers, [&](int64_t w) {
    const Id* const fresh = t.fresh + t.first_edge(w);
    int64_t idx = t.known;
    for (int64_t before = 0; before < w; ++before) idx += t.found[before];
    for (int64_t i = 0; i < t.found[w]; ++i, ++idx) {
      nodes[idx] = fresh[i];
      t.map[fresh[i]] = static_cast<int32_t>(idx);
    }
  });
  on_each_worker(t.workers, [&](int64_t w) {
    for (int64_t e = t.first_edge(w), end = t.first_edge(w + 1); e < end; ++e) {
      t.out[e] = t.map[t.sampled[e]];
    }
  });
}

template int64_t loop_claim(const LoopNames<int32_t>&);
template int64_t loop_claim(const LoopNames<int64_t>&);
template void loop_name(const LoopNames<int32_t>&, int32_t*);
template void loop_name(const LoopNames<int64_t>&, int64_t*);

}  // namespace gnnbench
