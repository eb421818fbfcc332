// Rows of a table, or of a cache, that is sharded over the GPUs of a group. Each GPU stores one
// shard and reads the other shards over NVLink.
//
// The row at place p, in storage order, is row p / count of shard p % count. Rows without a place
// are read from pinned host memory.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

constexpr int kMostShards = 64;

struct Shards {
  const void* at[kMostShards];  // addresses for this device
  int count;
  int own;           // the shard in this device's memory
  int64_t num_rows;  // of all shards, below 2^31
};

// How a batch is read. blocks: number of concurrent blocks of 256 threads, or 0 for one row per
// group of lanes. depth: number of rows (1, 2 or 4) that the lanes of a row request before they
// wait for the first. Depth 1 without a limit on blocks is the simple kernel. Fewer blocks with
// more rows at a time hide the latency to another GPU.
struct Reading {
  int blocks;
  int depth;
};

// out row i = the row of ids[i], at place places[ids[i]] (int32 [num_nodes], -1: none) or, if
// places is null, at place ids[i]. A row without a place goes to keys[i] = ids[i], i for a later
// read (page_order.h; kNowhere for the others) or, if keys is null, is read from host [num_nodes].
// With neither it fails a device assert, as does an id out of range. counts [3] are increased by
// the number of rows in the own shard, in other shards, and in none.
template <class Id>
void gather_sharded(Launch launch, const Shards& shards, const Reading& reading,
                    const int32_t* places, const void* host, const Id* ids, int64_t n,
                    int64_t num_nodes, int64_t row_bytes, uint64_t* keys, int64_t* counts,
                    void* out);

}  // namespace gnnbench::cuda
