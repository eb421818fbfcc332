#include "cuda/common/philox.h"

#include "bindings/cuda/notification.h"

namespace gnnbench::cuda {
namespace {

Tensor philox_cuda(int64_t key, Tensor counters) {
  check_layout(counters, "counters", 2);
  check_dtype(counters, "counters", ScalarType::Long);
  check_cuda({{counters, "counters"}});
  if (counters.size(1) != 4) fail("counters must have 4 words per row, it has ", counters.size(1));
  const OnDevice on(counters, "philox");
  Tensor out = on.empty({counters.size(0), 4}, ScalarType::Long);
  const Tensor fault_tensor = on.empty({1}, ScalarType::Int);
  philox(on.launch(), static_cast<uint64_t>(key), data<const int64_t>(counters), data<int64_t>(out),
         counters.size(0), data<int32_t>(fault_tensor));
  const int64_t fault = *read_numbers(on, {data<const int32_t>(fault_tensor), 1});
  if (fault != 0) fail("counters must hold words of 32 bits");
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("philox", TORCH_BOX(&philox_cuda)); }

}  // namespace gnnbench::cuda
