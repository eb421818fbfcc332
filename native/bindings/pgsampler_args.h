// Arguments and results that only the operator `pgsampler` has, for both devices.
#pragma once

#include "bindings/pick_spec.h"
#include "gnnbench/task.h"

namespace gnnbench {

enum class PgVariant { kPersistent, kFusion, kNonPersistent, kAsPrinted };

inline PgVariant pgsampler_variant(const std::string& name) {
  if (name == "persistent") return PgVariant::kPersistent;
  if (name == "fusion") return PgVariant::kFusion;
  if (name == "non_persistent") return PgVariant::kNonPersistent;
  if (name == "as_printed") return PgVariant::kAsPrinted;
  fail("variant must be one of persistent, fusion, non_persistent, as_printed, not '", name, "'");
}

// Whether all workers share a row that is too long for one worker.
inline bool splits_hubs(const std::string& hubs) {
  if (hubs != "split" && hubs != "whole") {
    fail("hubs must be 'split' or 'whole', not '", hubs, "'");
  }
  return hubs == "split";
}

// Whether a worker is a block of warps, as in the paper, instead of a warp.
inline bool pgsampler_by_block(const std::string& worker, const std::string& variant,
                               const std::string& hubs) {
  if (worker != "warp" && worker != "block") {
    fail("worker must be 'warp' or 'block', not '", worker, "'");
  }
  if (worker == "warp") return false;
  if (variant != "persistent" && variant != "non_persistent") {
    fail("worker 'block' requires variant 'persistent' or 'non_persistent', not '", variant, "'");
  }
  if (hubs != "whole") fail("worker 'block' does not split rows; use it with hubs='whole'");
  return true;
}

inline void check_capacity(const std::vector<int64_t>& capacity, size_t items, const char* what) {
  if (!capacity.empty() && capacity.size() != items) {
    fail("capacity must be empty or ", what, ", it has ", capacity.size(), " items");
  }
  for (const int64_t entries : capacity) {
    if (entries < 0 || entries > INT32_MAX) {
      fail("capacity must hold numbers between 0 and 2^31 - 1, it holds ", entries);
    }
  }
}

// Validates the arguments. Returns fetch_size.
inline uint32_t check_pgsampler(const Tensor& seeds, const std::vector<int64_t>& fanouts,
                                int64_t fetch_size, const std::vector<int64_t>& capacity) {
  if (fanouts.size() > static_cast<size_t>(kMaxTaskHops)) {
    fail("fanouts has ", fanouts.size(), " hops, pgsampler takes at most ", kMaxTaskHops);
  }
  if (seeds.numel() >= INT32_MAX) {
    fail("a batch of ", seeds.numel(), " seeds does not fit int32 blocks");
  }
  if (fetch_size < 1 || fetch_size > 32) {
    fail("fetch_size must be between 1 and 32, it is ", fetch_size);
  }
  check_capacity(capacity, 2, "(tasks, edges)");
  return static_cast<uint32_t>(fetch_size);
}

inline void check_pgsampler_pick(Pick pick) {
  if (pick == Pick::kRandomWalk) {
    fail("pick 'random_walk' is not one of pgsampler's, whose tasks draw from one row each");
  }
}

// The last tensor of the result, int64 [8]: the capacity used (tasks, edges), the (vertex, hop)
// tasks enqueued, processed and lost, slots read before their task was written, parts of split
// rows, and the number of attempts.
inline Tensor pgsampler_stats(const int64_t (&taken)[2], int64_t enqueued, int64_t processed,
                              int64_t stale, int64_t chunks, int64_t attempts) {
  Tensor out = torch::stable::empty({8}, ScalarType::Long);
  int64_t* at = static_cast<int64_t*>(out.data_ptr());
  for (const int64_t value :
       {taken[0], taken[1], enqueued, processed, enqueued - processed, stale, chunks, attempts}) {
    *at++ = value;
  }
  return out;
}

}  // namespace gnnbench
