// Times of the stages inside one operator call, for `gnnbench run sampling`: host clock and CUDA
// events. Off unless `trace` started one on this thread; a mark then costs one pointer test.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/stage.h"

namespace gnnbench::cuda {

// Assigns the time since the previous mark (or the start) to `stage` of `hop`: the host's until
// this call, the device's until the work enqueued so far is complete.
void trace_mark(const Launch& launch, Stage stage, int hop);

}  // namespace gnnbench::cuda
