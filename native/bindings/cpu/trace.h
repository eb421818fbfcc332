// Times of the stages inside one operator call, for `gnnbench run sampling`. Off unless `trace`
// began one on this thread: a mark then costs one test of a pointer.
#pragma once

#include "gnnbench/stage.h"

namespace gnnbench {

// The time since the mark before (or the begin) belongs to `stage` of `hop`.
void trace_mark(Stage stage, int hop);

}  // namespace gnnbench
