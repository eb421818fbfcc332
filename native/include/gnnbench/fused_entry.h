// Entries of Fused-Map's versioned table, which persists across batches without being cleared. An
// entry of another version counts as empty, so a batch starts by incrementing the version. GNNLab's
// table does the same (gnnlab.h). Here one word holds both the vertex and its local id.
//
//   bit  63 .. 56   55 .. 25   24 .. 0
//        version    vertex     local id; all ones while the vertex is claimed but has no id yet
//
// Version 0 is never current: an empty table is all zeros. Open addressing with linear probing.
// Entries of the current version are never removed, so a vertex lies before the first entry of
// another version in its probe sequence. For 31-bit vertices and int32 ids.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

// Results of a map that are not local ids.
constexpr int32_t kNew = INT32_MIN;            // claimed by the caller, who must assign its id
constexpr int32_t kTableFull = INT32_MIN + 1;  // no slot is left

constexpr uint32_t kLastFusedVersion = 255;
constexpr int64_t kMostVersionedNodes = (int64_t{1} << 25) - 1;

struct FusedEntries {
  static constexpr uint64_t kUnnamed = 0x1FFFFFF;

  uint64_t version;  // shifted into its bits

  static FusedEntries of(uint32_t version) { return {static_cast<uint64_t>(version) << 56}; }

  GNNBENCH_HD uint64_t claim(int32_t id) const {
    return version | static_cast<uint64_t>(static_cast<uint32_t>(id)) << 25 | kUnnamed;
  }
  GNNBENCH_HD uint64_t named(int32_t id, uint32_t local) const {
    return (claim(id) ^ kUnnamed) | local;
  }
  GNNBENCH_HD bool is_current(uint64_t entry) const { return (entry ^ version) >> 56 == 0; }

  // Returns the local id, kNew with the slot in `at`, kTableFull, or the inverted slot of a vertex
  // that another thread has claimed. `memory` is an array of entries with load(slot) and
  // exchange_if(slot, expected, wanted), a compare-and-swap that returns the previous entry.
  template <class Memory>
  GNNBENCH_HD int32_t enter(const Memory& memory, uint32_t slots, uint32_t home, int32_t id,
                            uint32_t* at) const {
    const uint64_t mine = claim(id);
    uint32_t slot = home;
    for (uint32_t probes = 0; probes < slots; ++probes) {
      uint64_t entry = memory.load(slot);
      if (!is_current(entry)) {
        const uint64_t stale = entry;
        entry = memory.exchange_if(slot, stale, mine);
        if (entry == stale) {
          *at = slot;
          return kNew;
        }
      }
      if ((entry ^ mine) >> 25 == 0) {
        const uint64_t local = entry & kUnnamed;
        return local == kUnnamed ? ~static_cast<int32_t>(slot) : static_cast<int32_t>(local);
      }
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
    return kTableFull;
  }
};

}  // namespace gnnbench
