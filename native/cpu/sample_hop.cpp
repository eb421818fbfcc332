#include "cpu/sample_hop.h"

#include <algorithm>
#include <atomic>

#include "cpu/parallel.h"
#include "cpu/philox.h"

namespace gnnbench {
namespace {

constexpr int64_t kAhead = 16;    // rows between a prefetch and its use
constexpr int64_t kBlocks = 256;  // Philox blocks computed together
constexpr int64_t kDraws = 4 * kBlocks;

// Draws of one row in order, of which only a window is held at a time.
class WindowedDraws {
 public:
  WindowedDraws(const HopDraws& draws, uint64_t vertex)
      : draws_{draws.key, vertex, draws.hop, draws.batch} {}

  uint32_t operator()(uint32_t draw) {
    if (draw >> 2 != index_) {
      index_ = draw >> 2;
      const Philox4 b = draws_.block(index_);
      words_[0] = b.x;
      words_[1] = b.y;
      words_[2] = b.z;
      words_[3] = b.w;
    }
    return words_[draw & 3];
  }

 private:
  Draws draws_;
  uint32_t index_ = UINT32_MAX;
  uint32_t words_[4];
};

// Draws that a row needs; 0 where every entry is taken.
inline int64_t draws_needed(const HopDraws& d, int64_t degree) {
  if (degree <= d.fanout) return 0;
  return d.pick == Pick::kFloyd ? d.fanout : degree - d.fanout;
}

template <class DrawFn>
inline void pick_row(const HopDraws& d, int64_t degree, DrawFn draw, uint32_t* out) {
  if (d.pick == Pick::kFloyd) {
    pick_floyd(static_cast<uint32_t>(degree), d.fanout, draw, out);
  } else {
    pick_reservoir(static_cast<uint32_t>(degree), d.fanout, draw, out);
  }
}

// Philox blocks of several rows, computed together.
struct Batch {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], words[kDraws];
  int64_t size = 0;

  void add(uint64_t vertex, uint32_t hop, int64_t blocks) {
    const uint32_t low = static_cast<uint32_t>(vertex);
    const uint32_t high = static_cast<uint32_t>((vertex >> 32) & 0xFFFFu) | (hop << 16);
    for (int64_t b = 0; b < blocks; ++b) {
      c0[size] = static_cast<uint32_t>(b);
      c1[size] = low;
      c2[size] = high;
      ++size;
    }
  }

  void compute(uint64_t key, uint32_t batch) {
    const int64_t padded = philox_padded(size);
    for (int64_t i = size; i < padded; ++i) c0[i] = c1[i] = c2[i] = 0;
    philox_blocks(key, batch, c0, c1, c2, padded, words);
    size = 0;
  }
};

}  // namespace

template <class Id>
HopCount count_hop(const Csc<Id>& csc, const Id* dst, int64_t n, uint32_t fanout, Row* rows,
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
      rows[i] = Row{first, degree};
      edges += std::min<int64_t>(degree, fanout);
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

template <class Id>
bool pick_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws, const Row* rows,
              const int64_t* starts, uint32_t* picks, int32_t* out_indptr, Id* neighbors,
              int64_t* positions) {
  out_indptr[0] = 0;
  std::atomic<bool> in_range{true};
  parallel_chunks(n, kRowChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    Batch batch;
    bool inside = true;
    int64_t offset = starts[chunk];
    for (int64_t i = begin; i < end; ++i) {
      offset += std::min<int64_t>(rows[i].degree, draws.fanout);
      out_indptr[i + 1] = static_cast<int32_t>(offset);
    }
    offset = starts[chunk];
    for (int64_t group = begin, next; group < end; group = next) {
      // As many rows as the batch has room for; a row that never fits comes alone.
      for (next = group; next < end; ++next) {
        const int64_t blocks = (draws_needed(draws, rows[next].degree) + 3) / 4;
        __builtin_prefetch(csc.indices + rows[next].begin);
        if (blocks > kBlocks) break;
        if (batch.size + blocks > kBlocks) break;
        batch.add(static_cast<uint64_t>(dst[next]), draws.hop, blocks);
      }
      const bool alone = next == group;
      if (alone) ++next;
      batch.compute(draws.key, draws.batch);

      const uint32_t* words = batch.words;
      int64_t place = offset;
      for (int64_t i = group; i < next; ++i) {
        const int64_t needed = draws_needed(draws, rows[i].degree);
        const int64_t count = std::min<int64_t>(rows[i].degree, draws.fanout);
        if (needed > 0) {
          uint32_t* out = picks + place;
          if (alone) {
            pick_row(draws, rows[i].degree, WindowedDraws(draws, static_cast<uint64_t>(dst[i])),
                     out);
          } else {
            pick_row(draws, rows[i].degree, [words](uint32_t s) { return words[s]; }, out);
            words += (needed + 3) / 4 * 4;
          }
          for (int64_t t = 0; t < count; ++t) {
            __builtin_prefetch(csc.indices + rows[i].begin + out[t]);
          }
        }
        place += count;
      }
      for (int64_t i = group; i < next; ++i) {
        const int64_t count = std::min<int64_t>(rows[i].degree, draws.fanout);
        const Id* from = csc.indices + rows[i].begin;
        const bool all = rows[i].degree <= draws.fanout;
        for (int64_t t = offset; t < offset + count; ++t) {
          const int64_t position = all ? t - offset : picks[t];
          neighbors[t] = from[position];
          if (positions) positions[t] = rows[i].begin + position;
          inside &= static_cast<uint64_t>(neighbors[t]) < static_cast<uint64_t>(csc.num_nodes);
        }
        offset += count;
      }
    }
    if (!inside) in_range.store(false, std::memory_order_relaxed);
  });
  return in_range.load();
}

template HopCount count_hop(const Csc<int32_t>&, const int32_t*, int64_t, uint32_t, Row*, int64_t*);
template HopCount count_hop(const Csc<int64_t>&, const int64_t*, int64_t, uint32_t, Row*, int64_t*);
template bool pick_hop(const Csc<int32_t>&, const int32_t*, int64_t, const HopDraws&, const Row*,
                       const int64_t*, uint32_t*, int32_t*, int32_t*, int64_t*);
template bool pick_hop(const Csc<int64_t>&, const int64_t*, int64_t, const HopDraws&, const Row*,
                       const int64_t*, uint32_t*, int32_t*, int64_t*, int64_t*);

}  // namespace gnnbench
