#include "cpu/common/philox.h"

#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

Tensor philox_cpu(int64_t key, Tensor counters) {
  check_layout(counters, "counters", 2);
  check_dtype(counters, "counters", ScalarType::Long);
  check_cpu(counters, "counters");
  if (counters.size(1) != 4) fail("counters must have 4 words per row, it has ", counters.size(1));
  Tensor out = empty_cpu({counters.size(0), 4}, ScalarType::Long);
  if (!philox(static_cast<uint64_t>(key), data<const int64_t>(counters), counters.size(0),
              data<int64_t>(out))) {
    fail("counters must hold words of 32 bits");
  }
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("philox", TORCH_BOX(&philox_cpu)); }

}  // namespace gnnbench
