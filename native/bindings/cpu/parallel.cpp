// Runs the kernels' workers on torch's threads, through the stable ABI.
#include "cpu/common/parallel.h"

#include <torch/csrc/stable/ops.h>

namespace gnnbench {

int64_t num_threads() { return torch::stable::get_num_threads(); }

void run_workers(int64_t workers, void (*fn)(void*, int64_t), void* ctx) {
  torch::stable::parallel_for(0, workers, 1, [=](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) fn(ctx, w);
  });
}

}  // namespace gnnbench
