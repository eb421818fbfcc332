// The passes of fused sampling over any map from nodes to local ids. A map has
//
//   prefetch(node)
//   claim<shared>(keys, n, first, fresh, out)
//       sets out[e] to the id of keys[e]; unknown keys get the ids first, first + 1, ... and are
//       appended to fresh, which has space for n; returns how many were unknown
//   name(node, id)   changes a claimed node's id
//   clear(node)      no-op unless kClears
#pragma once

#include <cstring>
#include <type_traits>

#include "cpu/common/fault_box.h"
#include "cpu/fastsample/fastsample.h"
#include "cpu/pick/floyd.h"
#include "cpu/pick/row_draws.h"

namespace gnnbench {

constexpr int64_t kFusedAhead = 16;              // items between a prefetch and its use
constexpr int64_t kFusedTask = 1024;             // nodes per task of settling
constexpr int64_t kFusedEdgeTask = 16 * 1024;    // edges per task of settling
constexpr int64_t kFusedWide = 8;                // entries copied at once
constexpr int64_t kFusedDrawn = 2 * kFloydRows;  // rows drawn before their picks are prefetched

// Runs body(worker, take) on every worker. take() returns the next task, or -1.
template <class Body>
void on_workers(int64_t workers, int64_t tasks, const Body& body) {
  struct Context {
    const Body* body;
    int64_t tasks;
    std::atomic<int64_t> next;
  } context{&body, tasks, {0}};
  const auto work = [](void* p, int64_t worker) {
    auto* c = static_cast<Context*>(p);
    (*c->body)(worker, [c] {
      const int64_t task = c->next.fetch_add(1, std::memory_order_relaxed);
      return task < c->tasks ? task : -1;
    });
  };
  if (workers == 1) return work(&context, 0);
  run_workers(workers, work, &context);
}

// Looks up or claims `n` neighbours and writes their ids.
template <bool kShared, class Map, class Id>
void map_edges(const Map& map, const FusedHop<Id>& hop, Claimer<Id>& claimer, const Id* keys,
               int64_t n, int32_t* out) {
  while (n > 0) {
    const int64_t run = std::min(n, claimer.room());
    const int32_t first = static_cast<int32_t>(hop.known + claimer.place());
    claimer.advance(map.template claim<kShared>(keys, run, first, claimer.nodes(), out));
    keys += run;
    out += run;
    n -= run;
  }
}

// A key is a node if neither it nor num_nodes - 1 - key is negative. One sign at the end, because
// vectors of the baseline instruction set cannot compare unsigned values.
template <class Id>
bool are_nodes(const Id* keys, int64_t n, int64_t num_nodes) {
  using Unsigned = std::make_unsigned_t<Id>;
  const Unsigned last = static_cast<Unsigned>(num_nodes - 1);
  Unsigned signs = 0;
  for (int64_t e = 0; e < n; ++e) {
    const Unsigned key = static_cast<Unsigned>(keys[e]);
    signs |= key | (last - key);
  }
  return static_cast<Id>(signs) >= 0;
}

// A chunk of rows whose edges fit on the stack. Rows are grouped by kind, so that no branch depends
// on a row's degree: first the whole rows, copied in blocks that can overrun into places written
// later, then the rows with picks.
template <bool kShared, class Map, class Id>
Fault sample_chunk(const Map& map, const FusedHop<Id>& hop, Claimer<Id>& claimer, int64_t begin,
                   int64_t end, int64_t start) {
  constexpr int64_t kMaxRows = 128;
  const uint32_t fanout = hop.draws.fanout;
  const PickSpec& spec = hop.draws.spec;
  const bool floyd = spec.pick == Pick::kFloyd, distinct = without_replacement(spec.pick);
  const Id* const indices = hop.csc.indices;
  const Row* const rows = hop.rows + begin;

  uint32_t at[kMaxRows];
  uint32_t low[kMaxRows + 1] = {}, high[kMaxRows + 1] = {}, degree[kMaxRows + 1] = {};
  uint8_t drawn[kMaxRows + 1], whole[kMaxRows + 1];
  int64_t num_drawn = 0, num_whole = 0, edges = 0;
  for (int64_t r = 0; r < end - begin; ++r) {
    const Row row = rows[r];
    const uint64_t vertex = static_cast<uint64_t>(hop.dst[begin + r]);
    at[r] = static_cast<uint32_t>(edges);
    edges += row.count;
    hop.indptr[begin + r + 1] = static_cast<int32_t>(start + edges);
    const bool draws = (row.count > 0) & !(distinct & (row.degree <= fanout));
    drawn[num_drawn] = whole[num_whole] = static_cast<uint8_t>(r);
    low[num_drawn] = static_cast<uint32_t>(vertex);
    high[num_drawn] = static_cast<uint32_t>(vertex >> 32);
    degree[num_drawn] = row.degree;
    num_drawn += draws;
    num_whole += !draws;
  }
  for (int64_t i = 0; i < num_whole; ++i) __builtin_prefetch(indices + rows[whole[i]].begin);

  // Draw s of drawn row i is picks[place(i) + s * stride].
  uint32_t picks[kFusedEdges + kFloydRows * kFusedFanout];
  const int64_t stride = floyd ? kFloydRows : 1;
  const auto place = [&](int64_t i) {
    return floyd ? i / kFloydRows * kFloydRows * fanout + i % kFloydRows : i * fanout;
  };
  if (floyd) {
    int64_t padded = num_drawn;
    for (; padded % kFloydRows != 0; ++padded) {
      low[padded] = high[padded] = 0;
      degree[padded] = fanout + 1;
    }
    const FloydBy by = widest_floyd(fanout);
    // A few rows at a time: the next rows are drawn while the picked entries are being prefetched.
    for (int64_t first = 0; first < padded; first += kFusedDrawn) {
      const int64_t n = std::min(kFusedDrawn, padded - first);
      floyd_rows(hop.draws, n, low + first, high + first, degree + first, picks + place(first), by);
      for (int64_t i = first; i < std::min(first + n, num_drawn); ++i) {
        const Id* const from = indices + rows[drawn[i]].begin;
        const uint32_t* const pick = picks + place(i);
        for (uint32_t s = 0; s < fanout; ++s) __builtin_prefetch(from + pick[s * stride]);
      }
    }
  } else {
    uint32_t moved[2 * kFusedFanout];
    int64_t next = 0;
    bool inside = true;
    for_row_draws(
        hop.draws, hop.dst + begin, 0, end - begin,
        [&](int64_t r) -> int64_t {
          return rows[r].count > 0 ? pick_draws(spec, rows[r].degree, fanout) : 0;
        },
        [&](int64_t r, auto draw) {
          uint32_t* const out = picks + place(next++);
          pick_row(spec, rows[r].begin, rows[r].degree, fanout, draw, out, moved);
          for (uint32_t s = 0; s < fanout; ++s) {
            inside &= out[s] < rows[r].degree;
            __builtin_prefetch(indices + rows[r].begin + out[s]);
          }
        },
        [](int64_t, int64_t) {});
    if (!inside) return Fault::kBadTables;
  }

  Id keys[kFusedEdges + 2 * kFusedWide];
  for (int64_t i = 0; i < num_whole; ++i) {
    const Row row = rows[whole[i]];
    const Id* const from = indices + row.begin;
    Id* const to = keys + at[whole[i]];
    if (row.begin + row.count + kFusedWide > hop.csc.num_edges) {
      std::copy_n(from, row.count, to);
      continue;
    }
    for (uint32_t t = 0; t < row.count; t += kFusedWide) {
      std::memcpy(to + t, from + t, kFusedWide * sizeof(Id));
    }
  }
  for (int64_t i = 0; i < num_drawn; ++i) {
    const Id* const from = indices + rows[drawn[i]].begin;
    const uint32_t* const pick = picks + place(i);
    Id* const to = keys + at[drawn[i]];
    for (uint32_t s = 0; s < fanout; ++s) to[s] = from[pick[s * stride]];
  }
  if (hop.positions) {
    int64_t* const to = hop.positions + start;
    for (int64_t i = 0; i < num_whole; ++i) {
      const Row row = rows[whole[i]];
      for (uint32_t t = 0; t < row.count; ++t) to[at[whole[i]] + t] = row.begin + t;
    }
    for (int64_t i = 0; i < num_drawn; ++i) {
      const uint32_t* const pick = picks + place(i);
      for (uint32_t s = 0; s < fanout; ++s) {
        to[at[drawn[i]] + s] = rows[drawn[i]].begin + pick[s * stride];
      }
    }
  }
  if (!are_nodes(keys, edges, hop.csc.num_nodes)) return Fault::kBadNeighbor;
  map_edges<kShared>(map, hop, claimer, keys, edges, hop.indices + start);
  return Fault::kNone;
}

// The same for one row at a time, in pieces. A row's picks are stored where its local ids will be.
template <bool kShared, class Map, class Id>
Fault sample_long_rows(const Map& map, const FusedHop<Id>& hop, Claimer<Id>& claimer,
                       uint32_t* moved, int64_t begin, int64_t end, int64_t start) {
  const uint32_t fanout = hop.draws.fanout;
  const PickSpec& spec = hop.draws.spec;
  for (int64_t r = begin; r < end; ++r) {
    const Row row = hop.rows[r];
    const bool draws = row.count > 0 && !takes_all(spec.pick, row.degree, fanout);
    int32_t* const out = hop.indices + start;
    auto* const picks = reinterpret_cast<uint32_t*>(out);
    if (draws) {
      pick_row(spec, row.begin, row.degree, fanout, WindowedDraws(hop.draws.of(hop.dst[r])), picks,
               moved);
    }
    for (int64_t from = 0; from < row.count; from += kFusedEdges) {
      const int64_t n = std::min<int64_t>(row.count - from, kFusedEdges);
      Id keys[kFusedEdges];
      for (int64_t t = 0; t < n; ++t) {
        const int64_t pick = draws ? picks[from + t] : from + t;
        if (pick >= row.degree) return Fault::kBadTables;
        keys[t] = hop.csc.indices[row.begin + pick];
        if (hop.positions) hop.positions[start + from + t] = row.begin + pick;
      }
      if (!are_nodes(keys, n, hop.csc.num_nodes)) return Fault::kBadNeighbor;
      map_edges<kShared>(map, hop, claimer, keys, n, out + from);
    }
    start += row.count;
    hop.indptr[r + 1] = static_cast<int32_t>(start);
  }
  return Fault::kNone;
}

template <bool kShared, class Map, class Id>
FaultAt sample_pass(const Map& map, const FusedHop<Id>& hop) {
  const uint32_t fanout = hop.draws.fanout;
  const int64_t unit = hop.walked ? kFusedEdges : fused_rows(fanout);
  const int64_t items = hop.walked ? hop.edges : hop.n;
  FaultBox box;
  if (!hop.walked) hop.indptr[0] = 0;
  on_workers(hop.workers, num_chunks(items, unit), [&](int64_t worker, auto take) {
    Claimer<Id> claimer(*hop.claims);
    for (int64_t c; (c = take()) >= 0 && !box.any();) {
      const int64_t begin = c * unit, end = std::min(items, begin + unit);
      Fault fault = Fault::kNone;
      if (hop.walked) {
        const Id* const keys = hop.walked + begin;
        map_edges<kShared>(map, hop, claimer, keys, end - begin, hop.indices + begin);
      } else if (fanout > kFusedFanout) {
        uint32_t* const moved = hop.moved ? hop.moved + worker * 2 * int64_t{fanout} : nullptr;
        fault = sample_long_rows<kShared>(map, hop, claimer, moved, begin, end, hop.starts[c]);
      } else {
        fault = sample_chunk<kShared>(map, hop, claimer, begin, end, hop.starts[c]);
      }
      if (fault != Fault::kNone) box.report(fault);
    }
  });
  return box.get();
}

template <class Map, class Id>
FaultAt fused_sample(const Map& map, const FusedHop<Id>& hop) {
  return hop.workers > 1 ? sample_pass<true>(map, hop) : sample_pass<false>(map, hop);
}

template <class Id>
bool read_row(const Csc<Id>& csc, const HopDraws& draws, Id node, Row& row) {
  CscRow found;
  if (!csc.read_row(node, found)) return false;
  row = Row{found.begin, found.degree,
            pick_count(draws.spec, found.begin, found.degree, draws.fanout)};
  return true;
}

// Sums the counts of rows that arrive in order, by chunk. Tasks and chunks can have different
// bounds.
class ChunkSums {
 public:
  ChunkSums(int64_t* sums, uint32_t fanout)
      : sums_(sums), shift_(std::countr_zero(static_cast<uint64_t>(fused_rows(fanout)))) {}
  ~ChunkSums() { flush(); }
  ChunkSums(const ChunkSums&) = delete;
  ChunkSums& operator=(const ChunkSums&) = delete;

  void add(int64_t row, uint32_t count) {
    if (row >> shift_ != chunk_) {
      flush();
      chunk_ = row >> shift_;
    }
    sum_ += count;
  }

 private:
  void flush() {
    if (sum_ > 0) std::atomic_ref(sums_[chunk_]).fetch_add(sum_, std::memory_order_relaxed);
    sum_ = 0;
  }

  int64_t* sums_;
  int shift_;
  int64_t chunk_ = 0, sum_ = 0;
};

template <class Id>
FaultAt fused_rows_of(const Csc<Id>& csc, const HopDraws& draws, const Id* nodes, int64_t n,
                      Row* rows, int64_t* sums) {
  std::fill_n(sums, num_chunks(n, fused_rows(draws.fanout)), 0);
  FaultBox box;
  parallel_chunks(n, kFusedTask / 4, [&](int64_t, int64_t begin, int64_t end) {
    ChunkSums sum(sums, draws.fanout);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kFusedAhead < end) __builtin_prefetch(csc.indptr + nodes[i + kFusedAhead]);
      if (!read_row(csc, draws, nodes[i], rows[i])) {
        box.report(Fault::kBadRow, nodes[i]);
        continue;
      }
      sum.add(i, rows[i].count);
    }
  });
  return box.get();
}

template <class Map, class Id>
Fault fused_seeds(const Map& map, const Id* seeds, int64_t n) {
  constexpr int64_t kPiece = 256;
  Id fresh[kPiece + 1];
  int32_t ids[kPiece];
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t count = std::min(n - begin, kPiece);
    const int32_t first = static_cast<int32_t>(begin);
    if (map.template claim<false>(seeds + begin, count, first, fresh, ids) < count) {
      return Fault::kRepeatedSeed;
    }
  }
  return Fault::kNone;
}

template <class Map, class Id>
void clear_nodes(const Map& map, const Id* nodes, int64_t n) {
  if constexpr (!Map::kClears) return;
  for (int64_t i = 0; i < n; ++i) {
    map.prefetch(nodes[std::min(i + kFusedAhead, n - 1)]);
    map.clear(nodes[i]);
  }
}

// Settles one block of claims: writes nodes and rows, and new ids if the block was moved.
template <class Map, class Id>
void settle_block(const Map& map, const FusedHop<Id>& hop, const FusedNext<Id>& next, int64_t block,
                  FaultBox& box) {
  const Claims<Id>& claims = *hop.claims;
  const Id* const fresh = claims.nodes + block * kClaimBlock;
  const int64_t n = claims.filled[block], base = claims.bases[block];
  std::copy_n(fresh, n, next.nodes + base);
  if (next.last) return clear_nodes(map, fresh, n);
  if (base != hop.known + block * kClaimBlock) {
    for (int64_t i = 0; i < n; ++i) map.name(fresh[i], static_cast<int32_t>(base + i));
  }
  ChunkSums sum(next.sums, next.draws.fanout);
  for (int64_t i = 0; i < n; ++i) {
    if (i + kFusedAhead < n) __builtin_prefetch(hop.csc.indptr + fresh[i + kFusedAhead]);
    Row& row = next.rows[base + i - next.first];
    if (!read_row(hop.csc, next.draws, fresh[i], row)) {
      box.report(Fault::kBadRow, fresh[i]);
      continue;
    }
    sum.add(base + i - next.first, row.count);
  }
}

// Settles nodes that were known before the hop.
template <class Map, class Id>
void settle_known(const Map& map, const FusedNext<Id>& next, int64_t begin, int64_t end) {
  std::copy(next.known + begin, next.known + end, next.nodes + begin);
  if (next.last) return clear_nodes(map, next.known + begin, end - begin);
  ChunkSums sum(next.sums, next.draws.fanout);
  for (int64_t i = std::max(begin, next.first); i < end; ++i) {
    Row row = next.known_rows[i - next.first];
    row.count = pick_count(next.draws.spec, row.begin, row.degree, next.draws.fanout);
    next.rows[i - next.first] = row;
    sum.add(i - next.first, row.count);
  }
}

template <class Map, class Id>
FaultAt fused_settle(const Map& map, const FusedHop<Id>& hop, const FusedNext<Id>& next) {
  const int64_t blocks = hop.claims->blocks.load(), dense = hop.claims->dense;
  const int64_t of_known = num_chunks(hop.known, kFusedTask);
  const bool moved = next.total > hop.known + dense;
  const int64_t tasks = blocks + of_known + (moved ? num_chunks(hop.edges, kFusedEdgeTask) : 0);
  if (!next.last) {
    std::fill_n(next.sums, num_chunks(next.total - next.first, fused_rows(next.draws.fanout)), 0);
  }
  FaultBox box;
  const int64_t workers = std::clamp<int64_t>(tasks / 2, 1, num_threads());
  on_workers(workers, tasks, [&](int64_t, auto take) {
    for (int64_t task; (task = take()) >= 0;) {
      if (task < blocks) {
        settle_block(map, hop, next, task, box);
      } else if (task < blocks + of_known) {
        const int64_t begin = (task - blocks) * kFusedTask;
        settle_known(map, next, begin, std::min(hop.known, begin + kFusedTask));
      } else {
        const int64_t begin = (task - blocks - of_known) * kFusedEdgeTask;
        settle_ids(hop.claims->bases, hop.known, dense, hop.indices + begin,
                   std::min(hop.edges - begin, kFusedEdgeTask));
      }
    }
  });
  return box.get();
}

}  // namespace gnnbench
