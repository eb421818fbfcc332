// Host-only test of the functions that host and device share. tests/kernels asserts the same
// constants for the operators and the reference, tests/gpu for the device.
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <vector>

#include "expect.h"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/fused_entry.h"
#include "gnnbench/id_set.h"
#include "gnnbench/pick.h"
#include "gnnbench/rmat.h"
#include "gnnbench/rng.h"
#include "gnnbench/task.h"

namespace {

bool equal(const gnnbench::Philox4& a, const gnnbench::Philox4& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

// Known results of Random123.
void philox_known_answers() {
  using gnnbench::philox4x32;
  expect(equal(philox4x32(0, {0, 0, 0, 0}), {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}),
         "philox of zeros");
  expect(equal(philox4x32(~uint64_t{0}, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}),
               {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}),
         "philox of ones");
  expect(equal(philox4x32(0x299F31D0A4093822, {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}),
               {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}),
         "philox of pi");
}

constexpr uint64_t kKey = 0x0123456789ABCDEF;

void draws_of_a_vertex() {
  const gnnbench::Draws small{kKey, 7, 1, 3}, large{kKey, 5000000007, 1, 3};
  const uint32_t of_small[] = {0xE3E33F98, 0xC4840E25, 0x80602A0E, 0xBDB0A323,
                               0xBB301E32, 0x85898C19, 0xCE330C42, 0xAE35DB89};
  const uint32_t of_large[] = {0x11E6A367, 0x505B0424, 0x870212CB, 0x7BF5BCC6,
                               0x9F0EF030, 0xAD239C92, 0xA9B9576B, 0x1B943B40};
  for (uint32_t i = 0; i < 8; ++i) {
    expect(small(i) == of_small[i], "draw of vertex 7");
    expect(large(i) == of_large[i], "draw of vertex 5000000007");
  }
}

void bounded_draws() {
  expect(gnnbench::bounded(0, 10) == 0, "bounded of the smallest draw");
  expect(gnnbench::bounded(0xFFFFFFFF, 10) == 9, "bounded of the largest draw");
  expect(gnnbench::bounded(0x80000000, 10) == 5, "bounded of the middle draw");
  expect(gnnbench::bounded(0xFFFFFFFF, 1) == 0, "bounded by one");
}

// Weights 1, 0, 3, 4: integers 2^29, 0, 3 * 2^29, 2^31 with mean 2^30.
constexpr uint32_t kThreshold[] = {0x80000000, 0, 0, 0xFFFFFFFF};
constexpr uint32_t kAlias[] = {2, 2, 3, 3};
constexpr int64_t kPrefix[] = {0x20000000, 0x20000000, 0x80000000, 0x100000000};

gnnbench::PickSpec spec_of(gnnbench::Pick which) {
  return {which, {kThreshold, kAlias, kPrefix}, {4, 3, 0x80000000}};
}

void pick(gnnbench::Pick which, uint64_t vertex, uint32_t degree, uint32_t fanout,
          std::initializer_list<int> expected, const char* what) {
  const gnnbench::PickSpec spec = spec_of(which);
  std::vector<int> out(fanout), moved(2 * fanout);
  const gnnbench::Draws draws{kKey, vertex, 1, 3};
  uint32_t drawn = 0;
  const auto draw = [&](uint32_t i) {
    drawn = i + 1 > drawn ? i + 1 : drawn;
    return draws(i);
  };
  gnnbench::pick_row(spec, 0, degree, fanout, draw, out.data(), moved.data());
  expect(out == std::vector<int>(expected), what);
  const uint32_t most = gnnbench::pick_draws(spec, degree, fanout);
  const bool fewer = which == gnnbench::Pick::kReservoirThinned;  // than the cells' maximum
  expect(fewer ? drawn <= most : drawn == most, "number of draws of the pick");
  expect(gnnbench::pick_count(spec, 0, degree, fanout) == fanout, "number of edges of the pick");
}

void picks() {
  using gnnbench::Pick;
  const uint64_t large = 5000000007;
  pick(Pick::kReservoir, 7, 12, 5, {0, 1, 2, 3, 7}, "reservoir 5 of 12");
  pick(Pick::kReservoir, 7, 20, 9, {0, 1, 2, 3, 4, 19, 11, 14, 10}, "reservoir 9 of 20");
  pick(Pick::kReservoir, large, 12, 5, {5, 1, 6, 3, 8}, "reservoir 5 of 12, large vertex");
  pick(Pick::kReservoirThinned, 7, 12, 5, {0, 1, 2, 3, 7}, "reservoir_thinned 5 of 12");
  pick(Pick::kReservoirThinned, 7, 60, 5, {24, 1, 47, 29, 46}, "reservoir_thinned 5 of 60");
  pick(Pick::kReservoirThinned, large, 1000, 3, {954, 518, 142}, "reservoir_thinned, large vertex");
  pick(Pick::kFloyd, 7, 12, 5, {7, 6, 5, 8, 11}, "floyd 5 of 12, one repeated value");
  pick(Pick::kFloyd, 7, 20, 9, {10, 9, 7, 11, 15, 8, 14, 12, 19}, "floyd 9 of 20");
  pick(Pick::kFloyd, large, 12, 5, {0, 2, 5, 10, 7}, "floyd 5 of 12, large vertex");
  pick(Pick::kFloyd, large, 6, 5, {0, 2, 3, 4, 5}, "floyd 5 of 6");
  pick(Pick::kFisherYates, 7, 12, 5, {10, 8, 5, 6, 9}, "fisher_yates 5 of 12");
  pick(Pick::kFisherYates, 7, 7, 6, {6, 4, 2, 5, 3, 1}, "fisher_yates 6 of 7");
  pick(Pick::kFisherYates, large, 20, 9, {1, 5, 9, 8, 17, 10, 15, 19, 7}, "fisher_yates 9 of 20");
  pick(Pick::kWithReplacement, 7, 12, 5, {10, 9, 6, 8, 8}, "with_replacement 5 of 12");
  pick(Pick::kWithReplacement, large, 3, 6, {0, 0, 1, 1, 1, 2}, "with_replacement 6 of 3");
  pick(Pick::kWeightedAlias, 7, 4, 8, {3, 3, 3, 3, 3, 2, 0, 3}, "weighted_alias 8 of 4");
  pick(Pick::kWeightedAlias, large, 4, 8, {0, 3, 3, 3, 3, 0, 2, 2}, "weighted_alias, large vertex");
  pick(Pick::kWeightedPrefix, 7, 4, 8, {3, 3, 3, 3, 3, 2, 2, 3}, "weighted_prefix 8 of 4");
  pick(Pick::kWeightedPrefix, large, 4, 8, {0, 3, 3, 3, 3, 0, 0, 2},
       "weighted_prefix, large vertex");
}

// The reference computes the same numbers with 60 decimal digits.
void cells() {
  using gnnbench::candidate_count;
  const uint32_t last[] = {0x22A55546, 0x67EFFFD5, 0xAD3AAA64};
  for (uint32_t c = 0; c < 3; ++c) {
    expect(candidate_count(31, last[c]) == c, "the last word of a count in the largest octave");
    expect(candidate_count(31, last[c] + 1) == c + 1, "the first word of the next count");
  }
  expect(candidate_count(3, 0x19A0FFFF) == 0 && candidate_count(3, 0x19A10000) == 1,
         "counts of a cell of 8 items");
  expect(candidate_count(3, 0xFFFFFFFF) == 8, "no more candidates than items");
  expect(candidate_count(31, 0xFFFFFFFF) == gnnbench::kMostCandidates,
         "maximum number of candidates");
  expect(gnnbench::thinned_from(5) == 24 && gnnbench::thinned_cells(24, 5) == 0,
         "a row that is too short for cells");
  expect(gnnbench::thinned_cells(25, 5) == 1 && gnnbench::thinned_cells(49, 5) == 4, "cells");
  expect(gnnbench::thinned_cells(0xFFFFFFFF, 1) == 29, "cells of the longest row");
  expect(gnnbench::thinned_cells(0xFFFFFFFF, (1u << 24) + 1) == 0, "a fanout without cells");
}

void counts() {
  using gnnbench::Pick;
  const uint32_t none[] = {gnnbench::kNoWeight};
  const int64_t zeros[] = {0, 0};
  for (const Pick which :
       {Pick::kReservoir, Pick::kReservoirThinned, Pick::kFloyd, Pick::kFisherYates}) {
    const gnnbench::PickSpec spec = spec_of(which);
    expect(gnnbench::pick_count(spec, 0, 3, 5) == 3, "a small row is taken whole");
    expect(gnnbench::takes_all(which, 5, 5) && gnnbench::pick_draws(spec, 5, 5) == 0,
           "a row taken whole draws nothing");
  }
  gnnbench::PickSpec spec = spec_of(Pick::kWeightedAlias);
  spec.tables.alias = none;
  expect(gnnbench::pick_count(spec, 0, 1, 5) == 0, "weighted_alias of a row without weight");
  spec = spec_of(Pick::kWeightedPrefix);
  spec.tables.prefix = zeros;
  expect(gnnbench::pick_count(spec, 0, 2, 5) == 0, "weighted_prefix of a row without weight");
  expect(gnnbench::pick_count(spec_of(Pick::kWithReplacement), 0, 0, 5) == 0, "an empty row");
  expect(gnnbench::pick_count(spec_of(Pick::kRandomWalk), 0, 1, 20) == 12, "visits of the walks");
}

// 0 <- 1 2 3, 1 <- 0, 2 <- 2 4 4, 3 isolated, 4 <- 0 1 2 3 4 5, 5 <- 0
constexpr int64_t kIndptr[] = {0, 3, 4, 7, 7, 13, 14};
constexpr int kIndices[] = {1, 2, 3, 0, 2, 4, 4, 0, 1, 2, 3, 4, 5, 0};
using Csc = gnnbench::Csc<int>;
constexpr Csc kGraph{kIndptr, kIndices, 6, 14};

void rows() {
  gnnbench::CscRow row{-1, 9};
  expect(kGraph.read_row(4, row) && row.begin == 7 && row.degree == 6, "a row");
  expect(kGraph.read_row(3, row) && row.begin == 7 && row.degree == 0, "an empty row");
  row = {-1, 9};
  const int64_t decreasing[] = {0, 3, 1}, negative[] = {-1, 3}, large[] = {0, int64_t{1} << 32};
  expect(!(Csc{decreasing, kIndices, 2, 14}).read_row(1, row), "offsets that decrease");
  expect(!(Csc{negative, kIndices, 1, 14}).read_row(0, row), "an offset before indices");
  expect(!(Csc{kIndptr, kIndices, 6, 13}).read_row(5, row), "an offset behind indices");
  expect(!(Csc{large, kIndices, 1, int64_t{1} << 40}).read_row(0, row), "a row beyond the draws");
  expect(row.begin == -1 && row.degree == 9, "an invalid row does not change the result");
  expect(kGraph.has_node(0) && kGraph.has_node(5), "nodes");
  expect(!kGraph.has_node(6) && !kGraph.has_node(-1), "ids that are not nodes");
}

void faults() {
  using gnnbench::Fault;
  const Fault both = Fault::kBadRow | Fault::kRepeatedSeed;
  expect(gnnbench::has(both, Fault::kBadRow) && !gnnbench::has(both, Fault::kBadSeed), "faults");
  expect(!gnnbench::has(Fault::kNone, both), "no fault");
}

// Ranks vertices by the hop at which they are first met, then by number, by counting bits of words.
void ranks(int hops) {
  const gnnbench::KnownLayout layout = gnnbench::KnownLayout::of(hops);
  const int64_t nodes = 200, groups = gnnbench::KnownLayout::groups(nodes);
  const int64_t words_of_group = layout.group_words();
  expect(groups * words_of_group >= layout.words(nodes - 1), "groups hold all vertices");
  std::vector<uint32_t> known(groups * words_of_group);
  std::vector<std::vector<int64_t>> met(hops + 1);
  for (int64_t v = 0; v < nodes; ++v) {
    const uint32_t first = static_cast<uint32_t>(v * 7 % (hops + 3));
    if (first > static_cast<uint32_t>(hops)) continue;  // never met
    met[first].push_back(v);
    const uint32_t later = first + static_cast<uint32_t>(v % 3);
    uint32_t bits = 1u << first;
    if (later <= static_cast<uint32_t>(hops)) bits |= 1u << later;
    known[layout.word(v)] |= bits << layout.shift(v);
  }
  bool right = true;
  for (int h = 0; h <= hops; ++h) {
    size_t rank = 0;
    for (int64_t v = 0; v < nodes; ++v) {
      const bool found = rank < met[h].size() && met[h][rank] == v;
      const uint32_t lowest = layout.first_met(known[layout.word(v)], h) >> layout.shift(v);
      right &= (lowest & 1) == found;
      rank += found;
    }
    uint32_t all = 0;
    for (const uint32_t word : known) all += std::popcount(layout.first_met(word, h));
    right &= all == met[h].size();
  }
  expect(right, "vertices first met at a hop");
}

// Many batches on one table that is never cleared, by one thread, compared with a map per batch.
struct PlainEntries {
  std::vector<uint64_t>& entries;

  uint64_t load(uint32_t slot) const { return entries[slot]; }
  uint64_t exchange_if(uint32_t slot, uint64_t expected, uint64_t wanted) const {
    const uint64_t before = entries[slot];
    if (before == expected) entries[slot] = wanted;
    return before;
  }
};

void versions() {
  using gnnbench::FusedEntries;
  std::vector<uint64_t> entries(97);
  const uint32_t slots = static_cast<uint32_t>(entries.size());
  bool right = true;
  for (uint32_t version = 1; version <= gnnbench::kLastFusedVersion; ++version) {
    const FusedEntries layout = FusedEntries::of(version);
    std::map<int32_t, uint32_t> known;
    for (uint32_t e = 0; e < 90; ++e) {
      const int32_t id = static_cast<int32_t>((e * e + 3 * version) % 53) * 40000000 % 0x7FFFFFFF;
      uint32_t at = 0;
      const uint32_t home = static_cast<uint32_t>(id) % slots;
      const int32_t found = layout.enter(PlainEntries{entries}, slots, home, id, &at);
      const auto before = known.find(id);
      right &=
          found == (before == known.end() ? gnnbench::kNew : static_cast<int32_t>(before->second));
      if (found != gnnbench::kNew) continue;
      const int32_t again = layout.enter(PlainEntries{entries}, slots, home, id, nullptr);
      right &= again == ~static_cast<int32_t>(at);  // claimed but without an id
      const uint32_t local =
          static_cast<uint32_t>(gnnbench::kMostVersionedNodes - 1 - known.size());
      known[id] = local;
      entries[at] = layout.named(id, local);
    }
  }
  expect(right, "a table that persists across batches");
  const FusedEntries last = FusedEntries::of(gnnbench::kLastFusedVersion);
  expect(!FusedEntries::of(1).is_current(0) && !last.is_current(0), "zeros are empty");
  expect(last.is_current(last.claim(INT32_MAX)), "the largest id in the last version");
  std::vector<uint64_t> full(3, last.named(7, 0));
  uint32_t at = 0;
  expect(last.enter(PlainEntries{full}, 3, 1, 8, &at) == gnnbench::kTableFull, "a full table");
}

void walk(int vertex, uint32_t fanout, std::initializer_list<int> nodes,
          std::initializer_list<uint32_t> visits, const char* what) {
  const gnnbench::Walk walks = spec_of(gnnbench::Pick::kRandomWalk).walk;
  const gnnbench::Draws draws{kKey, static_cast<uint64_t>(vertex), 1, 3};
  std::vector<int> ids(walks.visits());
  std::vector<uint32_t> counts(walks.visits());
  const uint32_t kept =
      gnnbench::pick_random_walk(kGraph, vertex, walks, fanout, draws, ids.data(), counts.data());
  ids.resize(kept);
  counts.resize(kept);
  expect(ids == std::vector<int>(nodes) && counts == std::vector<uint32_t>(visits), what);
}

void random_walks() {
  walk(0, 3, {1, 2, 3}, {4, 4, 2}, "random_walk from 0, a tie won by the smaller id");
  walk(2, 20, {4, 2, 0, 3, 5}, {7, 2, 1, 1, 1}, "random_walk from 2, every node visited");
  walk(4, 3, {0, 1, 2}, {5, 2, 2}, "random_walk from 4");
  const int strange[] = {1, 2, 9, 0, 2, 4, 4, 0, 1, 2, 3, 4, 5, -1};
  const gnnbench::Walk walks = spec_of(gnnbench::Pick::kRandomWalk).walk;
  int ids[12];
  uint32_t counts[12];
  const auto first = [](uint32_t) { return 0u; };
  expect(gnnbench::pick_random_walk(Csc{kIndptr, strange, 6, 14}, 5, walks, 3, first, ids,
                                    counts) == gnnbench::kBadWalk,
         "random_walk to an id that is not a node");
  expect(gnnbench::pick_random_walk(Csc{kIndptr, kIndices, 6, 2}, 5, walks, 3, first, ids,
                                    counts) == gnnbench::kBadWalkRow,
         "random_walk over a row that is not within indices");
}

// Ids 3, 40, 41 and 95 of 97; the last word is empty.
void sets_of_ids() {
  using gnnbench::place_of;
  const gnnbench::IdWord words[] = {{1u << 3, 0}, {1u << 8 | 1u << 9, 1}, {1u << 31, 3}, {0, 4}};
  expect(gnnbench::id_words(97) == 4 && gnnbench::id_words(96) == 3 && gnnbench::id_words(0) == 0,
         "words of nodes");
  expect(place_of(words, 4, 3) == 0 && place_of(words, 4, 40) == 1 && place_of(words, 4, 41) == 2 &&
             place_of(words, 4, 95) == 3,
         "ranks in a set");
  for (const int64_t id : {0, 2, 4, 42, 94, 96, 127}) {
    expect(place_of(words, 4, id) == -1, "an id that is not in the set");
  }
  expect(place_of(words, 4, -1) == -1 && place_of(words, 4, 128) == -1 &&
             place_of(words, 4, int64_t{1} << 40) == -1,
         "an id outside the words");
  const gnnbench::Ones ones{nullptr, 10, 3, 2, 4};  // ranks 10 to 21 of two batches
  expect(ones.offset(0, 10) == 0 && ones.offset(1, 10) == 4 && ones.offset(0, 14) == 8 &&
             ones.offset(1, 21) == 23,
         "offsets of ones");
  expect(ones.offset(0, 9) == -1 && ones.offset(0, 22) == -1 && ones.offset(1, -1) == -1,
         "ranks outside the ones");
}

// Three blocks per edge; the last block number exceeds 2^32. Constants from the simple version in
// tests/datasets/generators/test_rmat.py.
void rmat_edges() {
  const gnnbench::rmat::Law law{77, 21, {37356, 49807, 62259}};
  const struct {
    uint64_t edge;
    uint32_t source, target;
  } known[] = {{0, 134436, 590592}, {5, 1355860, 524288}, {4294967303, 409683, 590340}};
  for (const auto& edge : known) {
    const gnnbench::rmat::Ends ends = ends_of(law, edge.edge);
    expect(ends.source == edge.source && ends.target == edge.target, "ends of an R-MAT edge");
  }
}

}  // namespace

int main() {
  philox_known_answers();
  draws_of_a_vertex();
  bounded_draws();
  picks();
  cells();
  versions();
  for (const int hops : {1, 2, 3, 4, 7, 8, 15, 16, 31}) ranks(hops);
  counts();
  rows();
  faults();
  random_walks();
  sets_of_ids();
  rmat_edges();
  return failed();
}
