// Stages of a sampled hop that a trace measures separately. A stage that serves all hops has `hop`
// = kWholeBatch.
#pragma once

namespace gnnbench {

enum class Stage : int {
  kPrepare = 0,  // degrees, offsets, allocation, clearing of tables, reading back sizes
  kPick = 1,     // the sampling kernel
  kIdMap = 2,    // insertion and local ids
  kBlock = 3,    // the rest, until the block is complete
};

constexpr int kWholeBatch = -1;

}  // namespace gnnbench
