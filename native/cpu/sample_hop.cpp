#include "cpu/sample_hop.h"

#include <algorithm>
#include <atomic>

#include "cpu/parallel.h"
#include "cpu/row_draws.h"

namespace gnnbench {
namespace {

constexpr int64_t kAhead = 16;  // rows between a prefetch and its use

}  // namespace

template <class Id>
HopCount count_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws, Row* rows,
                   int64_t* starts) {
  std::atomic<int64_t> bad_dst{INT64_MAX}, bad_row{INT64_MAX};
  const auto report = [](std::atomic<int64_t>& to, int64_t at) {
    int64_t seen = to.load(std::memory_order_relaxed);
    while (at < seen && !to.compare_exchange_weak(seen, at)) {
    }
  };
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t edges = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) {
        const uint64_t next = static_cast<uint64_t>(dst[i + kAhead]);
        if (next < static_cast<uint64_t>(csc.num_nodes)) __builtin_prefetch(csc.indptr + next);
      }
      const uint64_t v = static_cast<uint64_t>(dst[i]);
      if (v >= static_cast<uint64_t>(csc.num_nodes)) {
        report(bad_dst, i);
        continue;
      }
      const int64_t first = csc.indptr[v], last = csc.indptr[v + 1], degree = last - first;
      if (first < 0 || degree < 0 || last > csc.num_edges || degree > UINT32_MAX) {
        report(bad_row, i);
        continue;
      }
      const uint32_t length = static_cast<uint32_t>(degree);
      rows[i] = Row{first, length, pick_count(draws.spec, first, length, draws.fanout)};
      edges += rows[i].count;
    }
    starts[chunk] = edges;
  });
  if (bad_dst.load() != INT64_MAX) return {HopError::kDstOutOfRange, bad_dst.load(), 0};
  if (bad_row.load() != INT64_MAX) return {HopError::kRowOutOfRange, bad_row.load(), 0};
  int64_t total = 0;
  for (int64_t c = 0, chunks = num_chunks(n, kRowChunk); c < chunks; ++c) {
    const int64_t edges = starts[c];
    starts[c] = total;
    total += edges;
  }
  if (total > INT32_MAX) return {HopError::kTooManyEdges, 0, total};
  return {HopError::kNone, 0, total};
}

int64_t pick_hop_scratch(const HopDraws& draws, int64_t edges) {
  return draws.spec.pick == Pick::kFisherYates ? 3 * edges : edges;
}

template <class Id>
PickFault pick_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                   const Row* rows, const int64_t* starts, uint32_t* scratch, int32_t* out_indptr,
                   Id* neighbors, int64_t* positions) {
  const PickSpec& spec = draws.spec;
  const uint32_t fanout = draws.fanout;
  out_indptr[0] = 0;
  std::atomic<PickFault> fault{PickFault::kNone};
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    const int64_t first = starts[chunk];
    int64_t edge = first;
    for (int64_t i = begin; i < end; ++i) {
      edge += rows[i].count;
      out_indptr[i + 1] = static_cast<int32_t>(edge);
    }
    // A chunk has room for its edges' picks and, for Fisher-Yates, twice as much beside them, of
    // which its rows use the first 2 fanout in turn.
    uint32_t* const picks = scratch + pick_hop_scratch(draws, first);
    uint32_t* const moved = picks + (edge - first);
    int64_t read = first;
    bool places = true, nodes = true;

    const auto needed = [&](int64_t i) -> int64_t {
      __builtin_prefetch(csc.indices + rows[i].begin);
      return rows[i].count == 0 ? 0 : pick_draws(spec, rows[i].degree, fanout);
    };
    const auto take = [&](int64_t i, auto draw) {
      const Row& row = rows[i];
      uint32_t* const out = picks + (out_indptr[i + 1] - row.count - first);
      pick_row(spec, row.begin, row.degree, fanout, draw, out, moved);
      for (uint32_t t = 0; t < row.count; ++t) {
        places &= out[t] < row.degree;
        __builtin_prefetch(csc.indices + row.begin + out[t]);
      }
    };
    const auto finish = [&](int64_t group, int64_t next) {
      if (!places) return;
      for (int64_t i = group; i < next; ++i) {
        const Row& row = rows[i];
        const Id* from = csc.indices + row.begin;
        const uint32_t* position =
            takes_all(spec.pick, row.degree, fanout) ? nullptr : picks + (read - first);
        for (uint32_t t = 0; t < row.count; ++t, ++read) {
          const uint32_t at = position ? position[t] : t;
          neighbors[read] = from[at];
          if (positions) positions[read] = row.begin + at;
          nodes &= static_cast<uint64_t>(neighbors[read]) < static_cast<uint64_t>(csc.num_nodes);
        }
      }
    };
    for_row_draws(draws, dst, begin, end, needed, take, finish);
    if (!places) fault.store(PickFault::kBadTables, std::memory_order_relaxed);
    if (!nodes) fault.store(PickFault::kBadIndices, std::memory_order_relaxed);
  });
  return fault.load();
}

template HopCount count_hop(const Csc<int32_t>&, const int32_t*, int64_t, const HopDraws&, Row*,
                            int64_t*);
template HopCount count_hop(const Csc<int64_t>&, const int64_t*, int64_t, const HopDraws&, Row*,
                            int64_t*);
template PickFault pick_hop(const Csc<int32_t>&, const int32_t*, int64_t, const HopDraws&,
                            const Row*, const int64_t*, uint32_t*, int32_t*, int32_t*, int64_t*);
template PickFault pick_hop(const Csc<int64_t>&, const int64_t*, int64_t, const HopDraws&,
                            const Row*, const int64_t*, uint32_t*, int32_t*, int64_t*, int64_t*);

}  // namespace gnnbench
