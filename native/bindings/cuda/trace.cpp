#include "bindings/cuda/trace.h"

#include <chrono>
#include <memory>
#include <vector>

#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

struct Mark {
  Stage stage;
  int hop;
  Clock::time_point at;
  cudaEvent_t event;
};

struct Trace {
  std::vector<Mark> marks;
  ~Trace() {
    for (const Mark& m : marks) cudaEventDestroy(m.event);
  }
};

thread_local std::unique_ptr<Trace> trace;

void add(const Launch& launch, Stage stage, int hop) {
  cudaEvent_t event;
  GNNBENCH_CUDA_CALL(launch, cudaEventCreate(&event));
  trace->marks.push_back({stage, hop, Clock::now(), event});
  GNNBENCH_CUDA_CALL(launch, cudaEventRecord(event, launch.stream));
}

// on: starts a trace on the device of `like` and returns an empty tensor. Otherwise ends it, waits
// for the device and returns its marks.
Tensor trace_cuda(Tensor like, bool on) {
  const OnDevice device(like, "trace");
  const Launch& launch = device.launch();
  if (on) {
    trace = std::make_unique<Trace>();
    trace->marks.reserve(256);
    add(launch, Stage::kPrepare, kWholeBatch);
    return torch::stable::empty({0, 4}, ScalarType::Double);
  }
  if (!trace) fail("no trace is active on this thread; start one with on=True");
  const std::unique_ptr<Trace> all = std::move(trace);
  const int64_t n = static_cast<int64_t>(all->marks.size()) - 1;
  Tensor out = torch::stable::empty({n, 4}, ScalarType::Double);
  double* row = data<double>(out);
  GNNBENCH_CUDA_CALL(launch, cudaEventSynchronize(all->marks.back().event));
  for (int64_t i = 1; i <= n; ++i, row += 4) {
    const Mark &m = all->marks[i], &before = all->marks[i - 1];
    float ms = 0.0f;
    GNNBENCH_CUDA_CALL(launch, cudaEventElapsedTime(&ms, before.event, m.event));
    row[0] = static_cast<double>(m.stage);
    row[1] = m.hop;
    row[2] = std::chrono::duration<double>(m.at - before.at).count();
    row[3] = ms * 1e-3;
  }
  return out;
}

}  // namespace

void trace_mark(const Launch& launch, Stage stage, int hop) {
  if (trace) add(launch, stage, hop);
}

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("trace", TORCH_BOX(&trace_cuda)); }

}  // namespace gnnbench::cuda
