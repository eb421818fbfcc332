// Rows that the device reads from host memory, page by page.
//
// The link to the host is fast, but address translation is slow: rows of a large table arrive
// several times faster if rows of one page (2 MiB) are read together. A radix sort of the ids' high
// bits gives this order. On an H200, 1.26 M rows of 512 B out of 48 GiB reach, of the 55 GB/s of a
// copy: 14 GB/s in batch order, 39 GB/s in page order with rows assigned to warps statically,
// 43.5 GB/s with tickets (as fast as ids that are already sorted).
//
//   keys   uint64 [n]   | id : 32 | place of its row in out : 32 |     kNowhere: nothing to read
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

constexpr uint64_t kNowhere = ~uint64_t{0};

// Keys, memory for sorting them, and CUB's scratch.
struct PageOrder {
  uint64_t* keys;
  uint64_t* sorted;
  void* scratch;
  size_t scratch_bytes;
};

// How rows are read. blocks: number of concurrent blocks of 1024 threads; a few saturate the link
// and leave the other multiprocessors to concurrent kernels. depth: number of rows (1, 2 or 4) that
// the lanes of a row request before they wait for the first.
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

// out row (place) = table row (id), page by page. Overwrites the keys.
void gather_keys(Launch launch, const Pages& pages, const PageOrder& order, int64_t n, void* out);

// The same for ids that occur several times. Each row is read once, in id order (page_bytes has no
// effect), and written to all its places, so that no later copy is needed. distinct [1] is
// increased by the number of rows read.
//
// For 8 batches of 1.26 M ids with a union of 5.4 M and 512 B per row, on an H200: 2.8 GB over the
// link (58 ms), concurrently 5.2 GB to DRAM (2 ms of its bandwidth). Before that the sort of 10 M
// keys by 28 bits takes four passes of 160 MB (0.3 ms).
void gather_once(Launch launch, const Pages& pages, const PageOrder& order, int64_t n,
                 int64_t* distinct, void* out);

}  // namespace gnnbench::cuda
