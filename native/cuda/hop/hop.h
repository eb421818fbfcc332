// One hop of DGL's method: degrees, offsets, picks.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"
#include "cuda/common/vertices.h"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/pick.h"

namespace gnnbench::cuda {

// Degree pass. offsets is int64 [n + 2]: offsets[i] = pick_count of dst[i] for i < n, offsets[n] =
// 0 and offsets[n + 1] = the hop's faults, here kBadSeed and kBadRow. After an exclusive scan over
// n + 1 items offsets[0..n] are the rows' output offsets.
template <class Id>
void hop_degrees(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const PickSpec& spec,
                 uint32_t fanout, int64_t* offsets);

template <class Id>
struct HopOut {
  int32_t* indptr;  // [n + 1], each offset plus `base`
  int32_t base;
  Id* neighbors;       // [offsets[n]]
  int64_t* positions;  // [offsets[n]] or nullptr
  Id* rows = nullptr;  // [offsets[n]] or nullptr: each edge's destination, by RowTeam::kBlock only
};

// The threads that draw a row.
enum class RowTeam {
  kByPick,  // as suits the pick: a thread, lanes or a warp; a block for a reservoir's long rows
  kBlock,   // a block for every row, as in DGL; kReservoir only
};

// Items of `slots`, uint32 scratch, that hop_pick needs for `edges` edges: 0 if its slots fit
// shared memory.
int64_t hop_pick_slots(Pick pick, RowTeam team, uint32_t fanout, int64_t edges);

// Pick pass over scanned offsets, for all picks except random_walk. Rows must be valid: call it
// only after the faults were read as 0. Reports kBadNeighbor and kBadTables in offsets[n + 1].
template <class Id>
void hop_pick(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const HopDraws& draws,
              RowTeam team, int64_t* offsets, uint32_t* slots, HopOut<Id> out);

// ---- random walks: counts are known only after the walks ----

// Neighbours of each row, padded to `width` = pick_count of a non-empty row.
template <class Id>
struct Walked {
  Id* ids;           // [n, width]
  uint32_t* visits;  // [n, width]
  int64_t width;
  void* scratch;  // hop_walk_scratch_bytes
};

template <class Id>
int64_t hop_walk_scratch_bytes(const Walk& walk, int64_t n);

// Replaces the scan of hop_degrees. Reads its unscanned counts, walks, and writes the number of
// neighbours kept to offsets[i], to be scanned. Does nothing if the degree pass found a fault.
template <class Id>
void hop_walk(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const HopDraws& draws,
              int64_t* offsets, Walked<Id> walked);

// Replaces hop_pick, over scanned offsets: removes the padding. weights float32 [offsets[n]];
// out.positions is not written.
template <class Id>
void hop_walk_compact(Launch launch, int64_t n, const int64_t* offsets, Walked<Id> walked,
                      HopOut<Id> out, float* weights);

}  // namespace gnnbench::cuda
