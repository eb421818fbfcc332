// Philox blocks by counter, for tests of the generator.
#pragma once

#include <cstdint>

#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// out[i] = the four words of the block of counter i; counters and out are int64 [n, 4]. fault[0]
// becomes 1 where a counter word does not fit 32 bits, else 0.
void philox(Launch launch, uint64_t key, const int64_t* counters, int64_t* out, int64_t n,
            int32_t* fault);

}  // namespace gnnbench::cuda
