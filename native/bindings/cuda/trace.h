// Times of the stages inside one operator call, for `gnnbench run sampling`: host clock and CUDA
// events. Off unless `trace` began one on this thread: a mark then costs one test of a pointer.
#pragma once

#include "cuda/common/launch.h"
#include "gnnbench/stage.h"

namespace gnnbench::cuda {

// The time since the mark before (or the begin) belongs to `stage` of `hop`: the host's until here,
// the device's until the work enqueued so far is done.
void trace_mark(const Launch& launch, Stage stage, int hop);

}  // namespace gnnbench::cuda
