// Twin graphs on the CPU: the CSC is built row by row, without an edge list.
//
// Costs per stored edge, for E edges, n nodes and ids of N bytes:
//   directed: one 64-bit draw (half a Philox block, ~5 ns vectorised), two dependent reads of the
//   inverse CDF (table up to 8n, prefix 8n bytes: cached inside a community), one read of the id
//   map (4n), one write (N), a sort inside L1/L2;
//   symmetric: the same for E/2 forward edges, stored as 4-byte ids (2E bytes), then per forward
//   edge one counted and one scattered write of N bytes, and a sort of every row.
// Scattered reads and writes of one cache line each dominate. At ~30 ns per line and core, two
// lines per stored edge limit two cores to 30 M edges/s. Memory beyond the CSC (N E):
// 2E + about 70n bytes for symmetric graphs, 75n for directed ones.
#include "cpu/twin/twin.h"

#include <atomic>
#include <cstring>
#include <memory>

#include "cpu/common/philox.h"
#include "cpu/twin/rows.h"

namespace gnnbench::twin {

namespace {

constexpr int64_t kEdgeChunk = 32768;
constexpr int kPasses = 4;
constexpr size_t kAhead = 16;

template <class Id>
class Generator {
 public:
  Generator(const GraphSpec& spec, int64_t* indptr, Id* indices)
      : spec_(spec),
        n_(spec.num_nodes),
        weights_{spec.key,
                 Bijection(spec.key, kStreamInRank, spec.num_nodes),
                 Bijection(spec.key, kStreamOutRank, spec.num_nodes),
                 Law{spec.in_law, spec.in_positive},
                 Law{spec.out_law, spec.out_positive},
                 spec.tied},
        indptr_(indptr),
        indices_(indices),
        start_(n_ + 1),
        community_of_(n_),
        region_of_(spec.communities) {
    for (int64_t r = 0; r < spec.regions; ++r) {
      for (int64_t c = spec.region_ptr[r]; c < spec.region_ptr[r + 1]; ++c) region_of_[c] = r;
    }
    for (int64_t c = 0; c < spec.communities; ++c) {
      std::fill(community_of_.begin() + spec.community_ptr[c],
                community_of_.begin() + spec.community_ptr[c + 1], static_cast<uint32_t>(c));
    }
    for (auto& sums : prefix_) sums.resize(n_ + 1);
    each_node([&](int64_t p) {
      const uint64_t weight = weights_.out(static_cast<uint32_t>(p));
      for (int inside = 0; inside < 2; ++inside) {
        prefix_[inside][p + 1] =
            level_weight(weight, inside, size_around(p), spec_.out_limit, spec_.boost);
      }
    });
    for (auto& sums : prefix_) {
      prefix_sum(n_, sums.data(), [&](int64_t p) { return sums[p + 1]; });
    }
  }

  int64_t run() {
    prefer_huge_pages(indices_, spec_.num_edges * sizeof(Id));
    plan();
    make_ids();
    const InverseCdf inverse[2] = {InverseCdf(prefix_[0].data(), n_),
                                   InverseCdf(prefix_[1].data(), n_)};
    if (spec_.symmetric) {
      forward_.reset(new uint32_t[start_[n_]]);
      prefer_huge_pages(forward_.get(), start_[n_] * sizeof(uint32_t));
      back_.reset(new std::atomic<uint32_t>[n_]());
    } else {
      make_indptr();
    }
    each_row_chunk([&](int64_t begin, int64_t end) { draw_rows(inverse, begin, end); });
    if (!spec_.symmetric) return start_[n_];
    make_indptr();
    mirror();
    sort_rows();
    return 2 * start_[n_];
  }

 private:
  using Bounds = uint32_t[kLevels + 1][2];

  struct Job {
    uint32_t position;
    uint32_t wanted;
    uint32_t drawn;  // draws made in advance: `wanted`, or 0 if the range has no weight
    int level;
    uint64_t total;
    Range range;
  };

  // Calls f for ranges of rows that draw about kEdgeChunk edges each.
  template <class F>
  void each_row_chunk(const F& f) {
    parallel_chunks(start_[n_], kEdgeChunk, [&](int64_t, int64_t begin, int64_t end) {
      const auto row = [&](int64_t edge) {
        return std::lower_bound(start_.begin(), start_.end(), edge) - start_.begin();
      };
      f(row(begin), end == start_[n_] ? n_ : row(end));
    });
  }

  template <class F>
  void each_node(const F& f) {
    parallel_chunks(n_, kNodeChunk, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i);
    });
  }

  int64_t size_around(int64_t position) const {
    const int64_t* at = spec_.community_ptr + community_of_[position];
    return at[1] - at[0];
  }

  // Prefix sums of the effective out-weights of a level.
  const uint64_t* prefix(int level) const { return prefix_[level == 0].data(); }

  void find_bounds(int64_t position, Bounds& bounds) const {
    const int64_t c = community_of_[position], r = region_of_[c];
    const int64_t* at = spec_.community_ptr;
    bounds[0][0] = static_cast<uint32_t>(position);
    bounds[0][1] = static_cast<uint32_t>(position + 1);
    bounds[1][0] = static_cast<uint32_t>(at[c]);
    bounds[1][1] = static_cast<uint32_t>(at[c + 1]);
    bounds[2][0] = static_cast<uint32_t>(at[spec_.region_ptr[r]]);
    bounds[2][1] = static_cast<uint32_t>(at[spec_.region_ptr[r + 1]]);
    bounds[3][0] = 0;
    bounds[3][1] = static_cast<uint32_t>(n_);
  }

  // Computes how many edges each row draws at each level, by weight. A row fills at most half of a
  // level. The excess goes to the next level, and the final remainder to any free positions.
  void plan() {
    if (!spec_.symmetric) {
      in_weight_.resize(n_);
      each_node([&](int64_t p) {
        in_weight_[p] = static_cast<uint32_t>(weights_.in(static_cast<uint32_t>(p)));
      });
    }
    uint64_t left = 0;
    for (int level = 0; level < kLevels; ++level) {
      wanted_[level].assign(n_, 0);
      left += static_cast<uint64_t>(spec_.level_edges[level]);
      for (int pass = 0; pass < kPasses && left > 0; ++pass) left -= give(level, left, false);
    }
    for (int level = 0; level < kLevels && left > 0; ++level) left -= give(level, left, true);
    prefix_sum(n_, start_.data(),
               [&](int64_t p) { return int64_t{wanted_[0][p]} + wanted_[1][p] + wanted_[2][p]; });
  }

  uint64_t give(int level, uint64_t left, bool by_room) {
    uint32_t* wanted = wanted_[level].data();
    const auto room = [&](int64_t p) -> uint64_t {
      Bounds bounds;
      find_bounds(p, bounds);
      const uint32_t count = level_range(bounds, level, spec_.symmetric).count();
      const uint32_t most = by_room ? count : count - count / 2;
      return most > wanted[p] ? most - wanted[p] : 0;
    };
    if (by_room) return share_out(n_, left, room, room, wanted);
    const auto share = [&](int64_t p) -> uint64_t {
      Bounds bounds;
      find_bounds(p, bounds);
      const uint64_t* sums = prefix(level);
      const uint64_t weight = level_range(bounds, level, spec_.symmetric).weight(sums);
      if (weight == 0) return 0;
      if (!spec_.symmetric) {
        return level_weight(in_weight_[p], level == 0, size_around(p), spec_.in_limit, spec_.boost);
      }
      const uint32_t* outer = bounds[level + 1];
      return (sums[p + 1] - sums[p]) * ((weight << 16) / (sums[outer[1]] - sums[outer[0]]));
    };
    return share_out(n_, left, share, room, wanted);
  }

  void make_ids() {
    const Bijection ids(spec_.key, kStreamIds, spec_.num_nodes);
    id_of_.resize(n_);
    each_node([&](int64_t p) { id_of_[p] = ids(static_cast<uint32_t>(p)); });
  }

  void make_indptr() {
    std::vector<uint32_t> degree(n_);
    each_node([&](int64_t p) {
      const uint32_t id = id_of_[p];
      degree[id] = static_cast<uint32_t>(start_[p + 1] - start_[p]);
      if (spec_.symmetric) degree[id] += back_[id].load(std::memory_order_relaxed);
    });
    prefix_sum(n_, indptr_, [&](int64_t v) { return int64_t{degree[v]}; });
  }

  void draw_rows(const InverseCdf (&inverse)[2], int64_t begin, int64_t end) {
    std::vector<Job> jobs;
    std::vector<uint32_t> c0, c1, c2;
    for (int64_t p = begin; p < end; ++p) {
      Bounds bounds;
      find_bounds(p, bounds);
      for (int level = 0; level < kLevels; ++level) {
        const uint32_t wanted = wanted_[level][p];
        if (wanted == 0) continue;
        const Range range = level_range(bounds, level, spec_.symmetric);
        const uint64_t total = range.weight(prefix(level));
        const uint32_t drawn = total ? wanted : 0;
        jobs.push_back({static_cast<uint32_t>(p), wanted, drawn, level, total, range});
        if (!spec_.symmetric) __builtin_prefetch(&indptr_[id_of_[p]]);
        for (uint32_t b = 0; b < (drawn + 1) / 2; ++b) {
          c0.push_back(b);
          c1.push_back(static_cast<uint32_t>(p));
          c2.push_back((kStreamEdges + static_cast<uint32_t>(level)) << 16);
        }
      }
    }
    const int64_t blocks = philox_padded(static_cast<int64_t>(c0.size()));
    for (auto* c : {&c0, &c1, &c2}) c->resize(blocks, 0);
    std::vector<uint32_t> words(4 * blocks);
    philox_blocks(spec_.key, kTag, c0.data(), c1.data(), c2.data(), blocks, words.data());

    // Grouped by the lookup table that they use: 0 outside the community, 1 inside.
    std::vector<uint64_t> points[2];
    const uint32_t* word = words.data();
    for (const Job& job : jobs) {
      for (uint32_t i = 0; i < job.drawn; ++i) {
        const uint64_t draw = static_cast<uint64_t>(word[2 * i + 1]) << 32 | word[2 * i];
        points[job.level == 0].push_back(job.range.point(prefix(job.level), job.total, draw));
      }
      word += 4 * ((job.drawn + 1) / 2);
    }
    std::vector<uint32_t> candidates[2];
    const uint32_t* candidate[2];
    for (int inside = 0; inside < 2; ++inside) {
      const auto& wanted = points[inside];
      candidates[inside].resize(wanted.size());
      candidate[inside] = candidates[inside].data();
      inverse[inside](wanted.data(), static_cast<int64_t>(wanted.size()),
                      candidates[inside].data());
      for (const uint32_t p : candidates[inside]) __builtin_prefetch(&id_of_[p]);
    }

    DrawnSet drawn;
    std::vector<uint32_t> row;
    for (size_t j = 0; j < jobs.size(); ++j) {
      const Job& job = jobs[j];
      // Rows are scattered, so their first lines are prefetched some rows ahead.
      if (!spec_.symmetric && j + kAhead < jobs.size()) {
        const Id* row_ahead = indices_ + indptr_[id_of_[jobs[j + kAhead].position]];
        __builtin_prefetch(row_ahead, 1);
        __builtin_prefetch(row_ahead + 64 / sizeof(Id), 1);
      }
      const int inside = job.level == 0;
      choose(job, candidate[inside], inverse[inside], drawn, row);
      candidate[inside] += job.drawn;
      if (j + 1 == jobs.size() || jobs[j + 1].position != job.position) {
        store_row(job.position, row);
        row.clear();
      }
    }
  }

  // Appends `wanted` distinct positions: the first distinct draws of the row and, past the limit of
  // draws, the free positions from a drawn start on.
  void choose(const Job& job, const uint32_t* ahead, const InverseCdf& inverse, DrawnSet& drawn,
              std::vector<uint32_t>& row) const {
    drawn.reset(job.wanted);
    const size_t full = row.size() + job.wanted;
    for (uint32_t i = 0; i < job.drawn; ++i) {
      if (drawn.insert(ahead[i])) row.push_back(ahead[i]);
    }
    if (row.size() == full) return;
    const Draws more =
        draws(spec_.key, kStreamEdges + static_cast<uint32_t>(job.level), job.position);
    const uint32_t limit = draw_limit(job.wanted);
    for (uint32_t i = job.drawn; job.total > 0 && i < limit && row.size() < full; ++i) {
      const uint32_t found =
          inverse(job.range.point(prefix(job.level), job.total, draw64(more, i)));
      if (drawn.insert(found)) row.push_back(found);
    }
    const uint32_t count = job.range.count();
    uint32_t at = static_cast<uint32_t>(mul_hi64(draw64(more, limit), count));
    for (; row.size() < full; at = at + 1 == count ? 0 : at + 1) {
      const uint32_t found = job.range.at(at);
      if (drawn.insert(found)) row.push_back(found);
    }
  }

  void store_row(uint32_t position, const std::vector<uint32_t>& row) {
    const uint32_t* const id_of = id_of_.data();
    if (spec_.symmetric) {
      uint32_t* out = forward_.get() + start_[position];
      for (const uint32_t p : row) {
        *out++ = id_of[p];
        back_[id_of[p]].fetch_add(1, std::memory_order_relaxed);  // in any order
      }
      return;
    }
    Id* const first = indices_ + indptr_[id_of[position]];
    Id* out = first;
    for (const uint32_t p : row) *out++ = static_cast<Id>(id_of[p]);
    std::sort(first, out);
  }

  // Writes both directions of every forward edge: a row's forward edges from its start, the
  // mirrored ones from its end. Rows have no duplicates and are sorted later, so this order does
  // not matter.
  void mirror() {
    each_row_chunk([&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const uint32_t v = id_of_[p];
        Id* out = indices_ + indptr_[v];
        for (int64_t e = start_[p]; e < start_[p + 1]; ++e) {
          const uint32_t u = forward_[e];
          *out++ = static_cast<Id>(u);
          const uint32_t rest = back_[u].fetch_sub(1, std::memory_order_relaxed);
          indices_[indptr_[u + 1] - rest] = static_cast<Id>(v);
        }
      }
    });
    forward_.reset();
  }

  void sort_rows() {
    parallel_chunks(n_, 256, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) {
        std::sort(indices_ + indptr_[v], indices_ + indptr_[v + 1]);
      }
    });
  }

  const GraphSpec& spec_;
  const int64_t n_;
  const Weights weights_;
  int64_t* const indptr_;
  Id* const indices_;
  HugeVector<uint64_t> prefix_[2];  // out-weights outside and inside a community
  HugeVector<uint32_t> in_weight_;  // for directed graphs
  HugeVector<int64_t> start_;       // start of the drawn edges, by position
  HugeVector<uint32_t> community_of_;
  std::vector<int64_t> region_of_;
  HugeVector<uint32_t> wanted_[kLevels];
  HugeVector<uint32_t> id_of_;
  std::unique_ptr<uint32_t[]> forward_;  // ids of the forward edges
  std::unique_ptr<std::atomic<uint32_t>[]> back_;
};

}  // namespace

template <class Id>
int64_t graph(const GraphSpec& spec, int64_t* indptr, Id* indices) {
  return Generator<Id>(spec, indptr, indices).run();
}

template int64_t graph<int32_t>(const GraphSpec&, int64_t*, int32_t*);
template int64_t graph<int64_t>(const GraphSpec&, int64_t*, int64_t*);

}  // namespace gnnbench::twin
