// Launchers of the twin generator on the GPU. It uses the functions of gnnbench/twin.h, and results
// are bitwise equal to those of the CPU. Pointers are to device memory unless stated otherwise.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/twin.h"

namespace gnnbench::cuda {

struct TwinNodes {
  uint64_t key;
  uint32_t num_nodes;
  const int64_t* community_ptr;  // [communities + 1]
  int64_t communities;
};

void twin_labels(Launch launch, TwinNodes nodes, uint32_t classes, uint32_t noise, int64_t* out);

// scores[id], distinct; splits take the smallest first.
void twin_scores(Launch launch, TwinNodes nodes, int64_t home, uint32_t locality,
                 uint32_t degree_bias, uint64_t* scores);

// places[id] = 1 where low <= scores[id] < high, else 0, for id < n; places[n] = 0. An exclusive
// scan over n + 1 items follows; then the ids of that range go to out.
void twin_split_mark(Launch launch, const uint64_t* scores, int64_t n, uint64_t low, uint64_t high,
                     int64_t* places);
void twin_split_fill(Launch launch, const int64_t* places, int64_t n, int64_t* out);

void twin_features(Launch launch, TwinNodes nodes, uint32_t classes, int32_t signal, int64_t first,
                   int64_t rows, int64_t dim, float* out);

// ---- sort of 64-bit keys by their lowest `bits` bits ----

size_t sort_keys_scratch_bytes(Launch launch, int64_t n, int bits);
// Both arrays hold n keys and are overwritten. Returns the sorted one.
uint64_t* sort_keys(Launch launch, void* scratch, size_t scratch_bytes, uint64_t* keys,
                    uint64_t* other, int64_t n, int bits);

// ---- graph ----

struct TwinRows {
  int64_t n;
  bool symmetric;
  const int64_t* community_ptr;
  int64_t communities;
  const int64_t* region_ptr;  // [regions + 1]
  int64_t regions;
  twin::Weights weights;  // its tables are in device memory
  uint64_t in_limit, out_limit, boost;
  uint32_t* community_of;           // [n]
  uint32_t* in_weight;              // [n], directed graphs only
  uint32_t* id_of;                  // [n]
  uint64_t* prefix[2];              // [n + 1], out-weights outside and inside a community
  uint32_t* wanted[twin::kLevels];  // [n]
};

// Writes communities, ids and weights of all positions. prefix[][i] is the weight of position i
// until it is scanned (exclusive, n + 1 items). Sets wanted to 0.
void twin_positions(Launch launch, TwinRows rows);

// shares[i] = weight of row i in a pass that distributes edges at a level, 0 if it has no room;
// shares[n] = 0. `by_room`: the share is the room.
void twin_shares(Launch launch, TwinRows rows, int level, bool by_room, uint64_t* shares);
// `sums` are the shares after an exclusive scan, `total` their sum (> 0). Adds each row's part of
// `left` to wanted, and the number distributed to *given.
void twin_give(Launch launch, TwinRows rows, int level, bool by_room, uint64_t left, uint64_t total,
               const uint64_t* sums, uint64_t* given);

// start[i] = number of edges that row i draws, start[n] = 0; to be scanned.
void twin_row_sizes(Launch launch, TwinRows rows, int64_t* start);

// Draws every row. slots: 2 * start[n] words, all bits set. keys [stored edges] = destination id <<
// id_bits | source id, in no particular order.
void twin_draw(Launch launch, TwinRows rows, const int64_t* start, uint32_t* slots, int id_bits,
               uint64_t* keys);

// CSC from sorted keys. Id is int32_t or int64_t.
template <class Id>
void twin_csc(Launch launch, const uint64_t* keys, int64_t num_edges, int64_t n, int id_bits,
              int64_t* indptr, Id* indices);

}  // namespace gnnbench::cuda
