#include "cpu/hop/choose.h"

#include "cpu/common/fault_box.h"
#include "cpu/common/parallel.h"
#include "cpu/pick/row_draws.h"

namespace gnnbench {

template <class Id>
HopCount count_choices(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                       int64_t* starts) {
  std::atomic<int64_t> broken{INT64_MAX};
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t edges = 0;
    for (int64_t i = begin; i < end; ++i) {
      CscRow row;
      if (!csc.read_row(dst[i], row)) {
        int64_t seen = broken.load();
        while (i < seen && !broken.compare_exchange_weak(seen, i)) {
        }
        break;
      }
      edges += pick_count(draws.spec, row.begin, row.degree, draws.fanout);
    }
    starts[chunk] = edges;
  });
  if (broken.load() != INT64_MAX) return {Fault::kBadRow, broken.load(), 0};
  int64_t total = 0;
  for (int64_t c = 0, chunks = num_chunks(n, kRowChunk); c < chunks; ++c) {
    const int64_t edges = starts[c];
    starts[c] = total;
    total += edges;
  }
  return {Fault::kNone, 0, total};
}

template <class Id>
FaultAt choose(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
               const int64_t* starts, uint32_t* scratch, const Choices<Id>& to) {
  const PickSpec& spec = draws.spec;
  const uint32_t fanout = draws.fanout;
  if (to.indptr) to.indptr[0] = 0;
  FaultBox box;
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t edge = starts[chunk];
    for (int64_t i = begin; i < end; ++i) {
      const CscRow row = csc.valid_row(dst[i]);
      const uint32_t count = pick_count(spec, row.begin, row.degree, fanout);
      uint32_t* const picks = scratch + pick_hop_scratch(draws, edge);
      const bool draws_row = count > 0 && !takes_all(spec.pick, row.degree, fanout);
      if (draws_row) {
        pick_row(spec, row.begin, row.degree, fanout, WindowedDraws(draws.of(dst[i])), picks,
                 picks + count);
      }
      for (uint32_t t = 0; t < count; ++t, ++edge) {
        const uint32_t at = draws_row ? picks[t] : t;
        if (at >= row.degree) return box.report(Fault::kBadTables);
        const Id neighbor = csc.indices[row.begin + at];
        if (!csc.has_node(neighbor)) return box.report(Fault::kBadNeighbor);
        to.neighbors[edge] = neighbor;
        if (to.targets) to.targets[edge] = dst[i];
        if (to.positions) to.positions[edge] = row.begin + at;
      }
      if (to.indptr) to.indptr[i + 1] = static_cast<int32_t>(edge);
    }
  });
  return box.get();
}

template HopCount count_choices(const Csc<int32_t>&, const int32_t*, int64_t, const HopDraws&,
                                int64_t*);
template HopCount count_choices(const Csc<int64_t>&, const int64_t*, int64_t, const HopDraws&,
                                int64_t*);
template FaultAt choose(const Csc<int32_t>&, const int32_t*, int64_t, const HopDraws&,
                        const int64_t*, uint32_t*, const Choices<int32_t>&);
template FaultAt choose(const Csc<int64_t>&, const int64_t*, int64_t, const HopDraws&,
                        const int64_t*, uint32_t*, const Choices<int64_t>&);

}  // namespace gnnbench
