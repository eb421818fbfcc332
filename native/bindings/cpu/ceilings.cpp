#include "cpu/ceilings/ceilings.h"

#include "bindings/ceilings_args.h"
#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

Tensor number(int64_t value) {
  Tensor out = empty_cpu(1, ScalarType::Long);
  *data<int64_t>(out) = value;
  return out;
}

void ceiling_copy_cpu(Tensor source, Tensor target) {
  check_ceiling_copy(source, target);
  check_cpu(source, "source");
  check_cpu(target, "target");
  ceiling_copy(data<const char>(source), ceiling_lines(source), data<char>(target));
}

Tensor ceiling_read_cpu(Tensor words, int64_t passes) {
  check_ceiling_read(words, passes);
  check_cpu(words, "words");
  if (words.numel() == 0) return number(0);
  return number(ceiling_read(data<const uint32_t>(words), ceiling_lines(words), passes));
}

Tensor ceiling_rows_cpu(Tensor words, Tensor ids) {
  check_ceiling_rows(words, ids);
  check_cpu(words, "words");
  check_cpu(ids, "ids");
  int64_t wrong = -1;
  const uint32_t sum = ceiling_rows(data<const uint32_t>(words), words.size(0), words.size(1),
                                    data<const int64_t>(ids), ids.numel(), &wrong);
  if (wrong >= 0) {
    fail("ids holds ", data<const int64_t>(ids)[wrong], " at position ", wrong,
         ", the table has the rows 0 to ", words.size(0) - 1);
  }
  return number(sum);
}

Tensor ceiling_fma_cpu(Tensor like, int64_t steps) {
  check_ceiling_steps(steps);
  check_cpu(like, "like");
  return number(static_cast<int64_t>(ceiling_fma(steps)));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("ceiling_copy", TORCH_BOX(&ceiling_copy_cpu));
  m.impl("ceiling_read", TORCH_BOX(&ceiling_read_cpu));
  m.impl("ceiling_rows", TORCH_BOX(&ceiling_rows_cpu));
  m.impl("ceiling_fma", TORCH_BOX(&ceiling_fma_cpu));
}

}  // namespace gnnbench
