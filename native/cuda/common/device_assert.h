// assert() in kernels, in release builds too: a bad index must end as an error, not as a wrong row.
#pragma once

#undef NDEBUG
#include <cassert>
