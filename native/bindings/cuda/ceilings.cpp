#include "cuda/ceilings/ceilings.h"

#include "bindings/ceilings_args.h"
#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

using Sum = unsigned long long;

// Returns an int64 [1] tensor, initially 0, that `run(launch, sum)` has written.
template <class Run>
Tensor summed(const Tensor& like, const char* op, const Run& run) {
  const OnDevice on(like, op);
  Tensor out = on.empty({1}, ScalarType::Long);
  GNNBENCH_CUDA_CALL(on.launch(),
                     cudaMemsetAsync(out.data_ptr(), 0, sizeof(Sum), on.launch().stream));
  run(on.launch(), data<Sum>(out));
  return out;
}

void ceiling_copy_cuda(Tensor source, Tensor target) {
  check_ceiling_copy(source, target);
  check_cuda({{source, "source"}, {target, "target"}});
  const OnDevice on(source, "ceiling_copy");
  ceiling_copy(on.launch(), source.data_ptr(), ceiling_lines(source), target.data_ptr());
}

Tensor ceiling_read_cuda(Tensor words, int64_t passes) {
  check_ceiling_read(words, passes);
  return summed(words, "ceiling_read", [&](Launch launch, Sum* sum) {
    if (words.numel() == 0) return;
    ceiling_read(launch, data<const uint32_t>(words), ceiling_lines(words), passes, sum);
  });
}

Tensor ceiling_rows_cuda(Tensor words, Tensor ids) {
  check_ceiling_rows(words, ids);
  check_cuda({{words, "words"}, {ids, "ids"}});
  return summed(words, "ceiling_rows", [&](Launch launch, Sum* sum) {
    ceiling_rows(launch, data<const uint32_t>(words), words.size(0), words.size(1),
                 data<const int64_t>(ids), ids.numel(), sum);
  });
}

Tensor ceiling_fma_cuda(Tensor like, int64_t steps) {
  check_ceiling_steps(steps);
  return summed(like, "ceiling_fma",
                [&](Launch launch, Sum* sum) { ceiling_fma(launch, steps, sum); });
}

Tensor ceiling_shared_cuda(Tensor like, int64_t steps) {
  check_ceiling_steps(steps);
  return summed(like, "ceiling_shared",
                [&](Launch launch, Sum* sum) { ceiling_shared(launch, steps, sum); });
}

void ceiling_mark_cuda(Tensor like) { ceiling_mark(OnDevice(like, "ceiling_mark").launch()); }

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("ceiling_copy", TORCH_BOX(&ceiling_copy_cuda));
  m.impl("ceiling_read", TORCH_BOX(&ceiling_read_cuda));
  m.impl("ceiling_rows", TORCH_BOX(&ceiling_rows_cuda));
  m.impl("ceiling_fma", TORCH_BOX(&ceiling_fma_cuda));
  m.impl("ceiling_shared", TORCH_BOX(&ceiling_shared_cuda));
  m.impl("ceiling_mark", TORCH_BOX(&ceiling_mark_cuda));
}

}  // namespace gnnbench::cuda
