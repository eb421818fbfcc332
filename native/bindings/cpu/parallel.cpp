// Runs the kernels' workers on torch's threads, through the stable ABI, or on the caller's team.
#include <torch/csrc/stable/ops.h>

#include "cpu/common/team.h"

namespace gnnbench {

int64_t num_threads() {
  const Team* const team = Team::of_thread();
  return team ? team->size() : torch::stable::get_num_threads();
}

void run_workers(int64_t workers, void (*fn)(void*, int64_t), void* ctx) {
  if (Team* const team = Team::of_thread()) return team->run(workers, fn, ctx);
  torch::stable::parallel_for(0, workers, 1, [=](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) fn(ctx, w);
  });
}

}  // namespace gnnbench
