#include "cpu/hop/hop.h"

#include <algorithm>
#include <atomic>

#include "cpu/common/fault_box.h"
#include "cpu/common/parallel.h"
#include "cpu/pick/row_draws.h"

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
        const Id next = dst[i + kAhead];
        if (csc.has_node(next)) __builtin_prefetch(csc.indptr + next);
      }
      CscRow row;
      if (!csc.has_node(dst[i])) {
        report(bad_dst, i);
        continue;
      }
      if (!csc.read_row(dst[i], row)) {
        report(bad_row, i);
        continue;
      }
      const uint32_t count = pick_count(draws.spec, row.begin, row.degree, draws.fanout);
      rows[i] = Row{row.begin, row.degree, count};
      edges += rows[i].count;
    }
    starts[chunk] = edges;
  });
  if (bad_dst.load() != INT64_MAX) return {Fault::kBadSeed, bad_dst.load(), 0};
  if (bad_row.load() != INT64_MAX) return {Fault::kBadRow, bad_row.load(), 0};
  int64_t total = 0;
  for (int64_t c = 0, chunks = num_chunks(n, kRowChunk); c < chunks; ++c) {
    const int64_t edges = starts[c];
    starts[c] = total;
    total += edges;
  }
  return {Fault::kNone, 0, total};
}

int64_t pick_hop_scratch(const HopDraws& draws, int64_t edges) {
  return draws.spec.pick == Pick::kFisherYates ? 3 * edges : edges;
}

template <class Id>
FaultAt pick_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                 const Row* rows, const int64_t* starts, uint32_t* scratch, int32_t* out_indptr,
                 Id* neighbors, int64_t* positions) {
  const PickSpec& spec = draws.spec;
  const uint32_t fanout = draws.fanout;
  out_indptr[0] = 0;
  FaultBox box;
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    const int64_t first = starts[chunk];
    int64_t edge = first;
    for (int64_t i = begin; i < end; ++i) {
      edge += rows[i].count;
      out_indptr[i + 1] = static_cast<int32_t>(edge);
    }
    // Scratch of a chunk: its edges' picks, plus twice as much for Fisher-Yates. Each row reuses
    // the first 2 fanout words of the latter.
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
          nodes &= csc.has_node(neighbors[read]);
        }
      }
    };
    for_row_draws(draws, dst, begin, end, needed, take, finish);
    if (!places) box.report(Fault::kBadTables);
    if (!nodes) box.report(Fault::kBadNeighbor);
  });
  return box.get();
}

template HopCount count_hop(const Csc<int32_t>&, const int32_t*, int64_t, const HopDraws&, Row*,
                            int64_t*);
template HopCount count_hop(const Csc<int64_t>&, const int64_t*, int64_t, const HopDraws&, Row*,
                            int64_t*);
template FaultAt pick_hop(const Csc<int32_t>&, const int32_t*, int64_t, const HopDraws&, const Row*,
                          const int64_t*, uint32_t*, int32_t*, int32_t*, int64_t*);
template FaultAt pick_hop(const Csc<int64_t>&, const int64_t*, int64_t, const HopDraws&, const Row*,
                          const int64_t*, uint32_t*, int32_t*, int64_t*, int64_t*);

}  // namespace gnnbench
