// Entries of Fused-Map's versioned table, which persists across batches without being cleared. An
// entry of another version counts as empty, so a batch starts by incrementing the version. GNNLab's
// table does the same (gnnlab.h). Here the entry also holds the local id, in the same word.
//
//   bit  63 .. 56   55 .. 25   24 .. 0
//        version    vertex     local id, all ones while the vertex is claimed and not yet named
//
// Version 0 is never current: zeros are an empty table. Open addressing with linear probing; a
// vertex lies before the first entry of another version on its way, since those of the current one
// never go. For vertices of 31 bits, int32 ids.
#pragma once

#include <cstdint>

#include "gnnbench/hd.h"

namespace gnnbench {

// Results of a map other than a local id.
constexpr int32_t kNew = INT32_MIN;            // claimed by the caller, who must name it
constexpr int32_t kTableFull = INT32_MIN + 1;  // no slot is left

constexpr uint32_t kLastFusedVersion = 255;
constexpr int64_t kMostVersionedNodes = (int64_t{1} << 25) - 1;

struct FusedEntries {
  static constexpr uint64_t kUnnamed = 0x1FFFFFF;

  uint64_t version;  // in place

  static FusedEntries of(uint32_t version) { return {static_cast<uint64_t>(version) << 56}; }

  GNNBENCH_HD uint64_t claim(int32_t id) const {
    return version | static_cast<uint64_t>(static_cast<uint32_t>(id)) << 25 | kUnnamed;
  }
  GNNBENCH_HD uint64_t named(int32_t id, uint32_t local) const {
    return (claim(id) ^ kUnnamed) | local;
  }
  GNNBENCH_HD bool is_current(uint64_t entry) const { return (entry ^ version) >> 56 == 0; }

  // The local id, kNew with the slot in `at`, kTableFull, or the inverted slot of a vertex that
  // another thread has claimed. `memory` is an array of entries: load(slot), and exchange_if(slot,
  // expected, wanted), which gives what was there.
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
