// Rows that the device reads out of host memory, page by page.
//
// The link to the host is fast, the translation of its addresses is not: rows of a large table come
// several times faster when those of one page (2 MiB) are read together. A batch is brought into
// such an order by a radix sort of its ids' high bits alone. On an H200, 1.26 M rows of 512 B out
// of 48 GiB, of 55 GB/s that a copy has: 14 as they come, 39 in order but dealt out to warps
// beforehand, 43.5 where warps draw tickets (as many as of ids that are in order already).
//
//   keys   uint64 [n]   | id : 32 | place of its row in out : 32 |     kNowhere: nothing to read
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

constexpr uint64_t kNowhere = ~uint64_t{0};

// Keys, the room for their sort, and what CUB wants.
struct PageOrder {
  uint64_t* keys;
  uint64_t* sorted;
  void* scratch;
  size_t scratch_bytes;
};

// The shape of what is read. blocks: of 1024 threads that read at a time; few fill the link, and
// leave the other multiprocessors to concurrent kernels. depth: rows (1, 2 or 4) that the lanes
// of a row ask for before they wait for the first.
struct Pages {
  const void* table;
  int64_t num_rows;  // below 2^32 - 1
  int64_t row_bytes;
  int64_t page_bytes;
  int blocks;
  int depth;
};

size_t page_order_scratch_bytes(Launch launch, int64_t n);

// keys[i] = ids[i], first + i. An id out of range fails a device assert.
template <class Id>
void page_keys(Launch launch, const Id* ids, int64_t first, int64_t n, int64_t num_rows,
               uint64_t* keys);

// out row (place) = table row (id), page by page; keys are overwritten.
void gather_keys(Launch launch, const Pages& pages, const PageOrder& order, int64_t n, void* out);

// The same of ids that are there several times: each row is read once, in the order of the ids
// (page_bytes does not matter), and written to all its places, so that nothing is copied later.
// distinct [1] is raised by the number of rows read.
//
// For 8 batches of 1.26 M ids with a union of 5.4 M, 512 B a row, on an H200: 2.8 GB over the link
// (58 ms) while 5.2 GB go to DRAM (2 ms of its time); before it the sort of 10 M keys by 28 bits,
// four passes of 160 MB (0.3 ms).
void gather_once(Launch launch, const Pages& pages, const PageOrder& order, int64_t n,
                 int64_t* distinct, void* out);

}  // namespace gnnbench::cuda
