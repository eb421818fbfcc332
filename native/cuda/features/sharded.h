// Rows of a table, or of a cache, that is dealt out over the GPUs of a group: each holds a shard in
// its memory and reads those of the others over NVLink.
//
// A row's place p, in the order in which rows are held, is row p / count of shard p % count. Rows
// without a place are read out of locked host memory.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

constexpr int kMostShards = 64;

struct Shards {
  const void* at[kMostShards];  // addresses that this device reads
  int count;
  int own;           // the shard in this device's memory
  int64_t num_rows;  // of all shards, below 2^31
};

// How a batch is read. blocks: of 256 threads at a time, 0 for one row a group of lanes; depth:
// rows (1, 2 or 4) that the lanes of a row ask for before they wait for the first. One row and no
// cap is the plain kernel; more rows at a time, by fewer blocks, cover the way to another GPU and
// back.
struct Reading {
  int blocks;
  int depth;
};

// out row i = the row of ids[i]: of place places[ids[i]] (int32 [num_nodes], -1: none), or, where
// places is null, of place ids[i]. A row without a place is left to be read, keys[i] = ids[i], i
// (page_order.h; kNowhere of the others), or, where keys is null, read out of host [num_nodes];
// with neither it fails a device assert, as does an id out of range. counts [3] are raised by the
// rows that were in the own shard, in others, and in none.
template <class Id>
void gather_sharded(Launch launch, const Shards& shards, const Reading& reading,
                    const int32_t* places, const void* host, const Id* ids, int64_t n,
                    int64_t num_nodes, int64_t row_bytes, uint64_t* keys, int64_t* counts,
                    void* out);

}  // namespace gnnbench::cuda
