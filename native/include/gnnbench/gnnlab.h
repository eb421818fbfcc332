// The id map of the gnnlab sampler: a table that persists across batches without being cleared. An
// entry of another version counts as empty, so a batch starts by incrementing the version. GNNLab's
// public code clears its table for every batch; its versions tell the hops of a batch apart.
//
//   int64 [capacity]   | entry 0 .. entry slots-1 | id 0, id 1 | .. | id slots-2, id slots-1 | ..
//                        int64                      int32, two to a word            unused
//
//   entry   version << 48 | vertex; version 0 is never current, so an empty table is all zeros
//   id      the vertex's local id, once assigned
//   slots   the largest power of two whose entries and ids fit
//
// Open addressing with linear probing. Entries of the current version are never removed, so a
// vertex lies before the first entry of another version in its probe sequence.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

constexpr int64_t kMaxVersion = 65535;
constexpr int kVersionShift = 48;  // Philox's counter also holds 48-bit vertices

struct VersionedTable {
  uint64_t* entries;  // [slots]
  int32_t* ids;       // [slots]
  uint64_t slots;
  uint64_t version;
  int hash_shift;  // 64 - log2(slots)

  GNNBENCH_HD uint64_t entry(int64_t vertex) const {
    return version << kVersionShift | static_cast<uint64_t>(vertex);
  }
  GNNBENCH_HD bool current(uint64_t entry) const { return entry >> kVersionShift == version; }
  GNNBENCH_HD uint64_t home(int64_t vertex) const {  // Fibonacci hashing
    return (static_cast<uint64_t>(vertex) * 0x9E3779B97F4A7C15ull) >> hash_shift;
  }
  GNNBENCH_HD uint64_t after(uint64_t slot) const { return (slot + 1) & (slots - 1); }
};

// Words of a table for `keys` vertices: at least a third of its slots stay empty.
inline int64_t versioned_capacity(int64_t keys) {
  int64_t slots = 16;
  while (slots < keys + keys / 2) slots *= 2;
  return slots + slots / 2;
}

// Lays out a table of at least versioned_capacity(0) words.
inline VersionedTable versioned_table(int64_t* words, int64_t capacity, int64_t version) {
  uint64_t slots = 2;
  int log2_slots = 1;
  while (static_cast<int64_t>(slots * 2 + slots) <= capacity) {
    slots *= 2;
    ++log2_slots;
  }
  return {reinterpret_cast<uint64_t*>(words), reinterpret_cast<int32_t*>(words + slots), slots,
          static_cast<uint64_t>(version), 64 - log2_slots};
}

}  // namespace gnnbench
