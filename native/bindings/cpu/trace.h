// Times of the stages inside one operator call, for `gnnbench run sampling`. Off unless `trace`
// started one on this thread; a mark then costs one pointer test.
#pragma once

#include "gnnbench/stage.h"

namespace gnnbench {

// Assigns the time since the previous mark (or the start) to `stage` of `hop`.
void trace_mark(Stage stage, int hop);

}  // namespace gnnbench
