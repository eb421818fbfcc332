// assert() in kernels, in release builds too: an invalid index must raise an error instead of
// returning a wrong row.
#pragma once

#undef NDEBUG
#include <cassert>
