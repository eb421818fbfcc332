// The launchers of the CUDA library: plain pointers into device memory, no torch. Nothing here
// allocates and nothing waits for the device. `Id` is int32_t or int64_t.
//
// Scratch is given by the caller; a function `..._scratch_bytes` says how much CUB wants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/launch.h"
#include "gnnbench/aggregate.h"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/pick.h"

namespace gnnbench::cuda {

// out[i] = the four words of the block of counter i; counters and out are int64 [n, 4]. fault[0]
// becomes 1 where a counter word does not fit 32 bits, else 0.
void philox(Launch launch, uint64_t key, const int64_t* counters, int64_t* out, int64_t n,
            int32_t* fault);

// ---- in-place exclusive sums (cub::DeviceScan) ----

template <class T>
size_t scan_scratch_bytes(Launch launch, int64_t n);
template <class T>
void exclusive_scan(Launch launch, void* scratch, size_t scratch_bytes, T* data, int64_t n);

// ---- sample_hop ----

// Destinations may have another id dtype than the graph.
struct Vertices {
  const void* data;
  bool wide;  // int64_t, else int32_t

  GNNBENCH_HD int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// Degree pass: offsets is int64 [n + 2]; offsets[i] = pick_count of dst[i] for i < n,
// offsets[n] = 0 and offsets[n + 1] = the hop's faults, here kBadSeed and kBadRow. After an
// exclusive scan over n + 1 items offsets[0..n] are the rows' output offsets.
template <class Id>
void hop_degrees(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const PickSpec& spec,
                 uint32_t fanout, int64_t* offsets);

template <class Id>
struct HopOut {
  int32_t* indptr;  // [n + 1], each offset plus `base`
  int32_t base;
  Id* neighbors;       // [offsets[n]]
  int64_t* positions;  // [offsets[n]] or nullptr
};

// Items of `slots`, uint32 scratch, that hop_pick needs for `edges` edges: 0 where its slots fit
// shared memory.
int64_t hop_pick_slots(Pick pick, uint32_t fanout, int64_t edges);

// Pick pass over scanned offsets, of all picks but random_walk. Rows must be sound: call it only
// after no fault was read. Tells kBadNeighbor and kBadTables in offsets[n + 1].
template <class Id>
void hop_pick(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const HopDraws& draws,
              int64_t* offsets, uint32_t* slots, HopOut<Id> out);

// ---- random walks: counts are known once the walks are walked ----

// Neighbours of each row, padded to `width` = pick_count of a row that is not empty.
template <class Id>
struct Walked {
  Id* ids;           // [n, width]
  uint32_t* visits;  // [n, width]
  int64_t width;
  void* scratch;  // hop_walk_scratch_bytes
};

template <class Id>
int64_t hop_walk_scratch_bytes(const Walk& walk, int64_t n);

// Instead of hop_degrees' scan: over its counts, unscanned, it walks and leaves the number of
// neighbours kept in offsets[i], to be scanned; does nothing where the degree pass found a fault.
template <class Id>
void hop_walk(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const HopDraws& draws,
              int64_t* offsets, Walked<Id> walked);

// Instead of hop_pick, over scanned offsets: takes the padding out. weights float32 [offsets[n]];
// out.positions is not written.
template <class Id>
void hop_walk_compact(Launch launch, int64_t n, const int64_t* offsets, Walked<Id> walked,
                      HopOut<Id> out, float* weights);

// ---- id_map: three passes (insert, rank, map), order of first occurrence ----

// Most items one map takes: values start as bytes of 0x7F, which must be above every position.
constexpr int64_t kIdMapMaxItems = 0x7F7F7F7F;

// Items are dst (each once) then neighbors; `n` of them, at most kIdMapMaxItems.
template <class Id>
struct IdMapItems {
  const Id* dst;
  int64_t num_dst;
  const Id* neighbors;
  int64_t num_neighbors;

  GNNBENCH_HD int64_t size() const { return num_dst + num_neighbors; }
};

// Open-addressing table and the per-item arrays of the passes.
template <class Id>
struct IdMapScratch {
  Id* keys;           // [capacity], -1: empty
  int32_t* values;    // [capacity], smallest position of the key, later its local id
  uint32_t* slot_of;  // [n], the table slot of each item
  int32_t* ranks;     // [n + 2]
  int64_t capacity;   // id_map_capacity(n)
};

// A power of two, at least twice the number of items: probing always meets an empty slot.
int64_t id_map_capacity(int64_t n);

// Pass 1 and the flags of pass 2: after an exclusive scan over ranks[0..n] (n + 1 items), ranks[i]
// is the local id of a first occurrence, ranks[n] the number of nodes and ranks[n + 1] the
// faults: kNegativeId, kRepeatedSeed, and those of the hop that drew the neighbours, `hop_faults`
// on the device, where not null.
template <class Id>
void id_map_insert(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch,
                   const int64_t* hop_faults);

// Rest of pass 2 (compact) and pass 3 (map): src_nodes [ranks[n]], local int32 [num_neighbors].
template <class Id>
void id_map_finish(Launch launch, IdMapItems<Id> items, IdMapScratch<Id> scratch, Id* src_nodes,
                   int32_t* local);

// ---- gather ----

// out row i = table row ids[i], rows of row_bytes bytes; an id out of range fails a device assert.
template <class Id>
void gather_rows(Launch launch, const void* table, int64_t num_rows, const Id* ids, int64_t n,
                 int64_t row_bytes, void* out);

// ---- aggregate ----

// out [num_dst, dim] from x [num_src, dim]; an index out of range fails a device assert. `Real` is
// float or double.
template <class Real>
void aggregate(Launch launch, const int32_t* indptr, const int32_t* indices, const Real* x,
               int64_t num_edges, int64_t num_src, int64_t num_dst, int64_t dim, Aggregate mode,
               Real* out);

// Backward goes over the transposed block, made by a stable sort of the edges by source: each
// source's terms are added in the order of destinations, those of a source of more than
// kLongRow edges in parts that depend on their number alone, so that sums do not depend on the
// schedule.
constexpr int64_t kLongRow = 128;

struct TransposeScratch {
  int32_t* sources;    // [num_edges], sorted
  int32_t* rows;       // [num_edges], destination of each edge
  int32_t* sorted;     // [num_edges], destinations by source
  int32_t* offsets;    // [num_src + 1]
  int32_t* long_rows;  // [num_edges / kLongRow + 1], the number of them first
  void* weights;       // Real [num_dst]
  void* cub;
  size_t cub_bytes;  // aggregate_backward_scratch_bytes
};

size_t aggregate_backward_scratch_bytes(Launch launch, int64_t num_edges, int64_t num_src);

template <class Real>
void aggregate_backward(Launch launch, const int32_t* indptr, const int32_t* indices,
                        const Real* grad, int64_t num_edges, int64_t num_src, int64_t num_dst,
                        int64_t dim, Aggregate mode, TransposeScratch scratch, Real* out);

}  // namespace gnnbench::cuda
