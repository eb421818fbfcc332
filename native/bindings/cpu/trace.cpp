#include "bindings/cpu/trace.h"

#include <chrono>
#include <memory>
#include <vector>

#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

using Clock = std::chrono::steady_clock;

struct Mark {
  Stage stage;
  int hop;
  Clock::time_point at;
};

thread_local std::unique_ptr<std::vector<Mark>> marks;

// on: starts a trace and returns an empty tensor. Otherwise ends it and returns its marks.
Tensor trace_cpu(Tensor like, bool on) {
  if (on) {
    marks = std::make_unique<std::vector<Mark>>();
    marks->reserve(256);
    marks->push_back({Stage::kPrepare, kWholeBatch, Clock::now()});
    return empty_cpu(0, ScalarType::Double);
  }
  if (!marks) fail("no trace is active on this thread; start one with on=True");
  const std::unique_ptr<std::vector<Mark>> all = std::move(marks);
  const int64_t n = static_cast<int64_t>(all->size()) - 1;
  Tensor out = empty_cpu({n, 4}, ScalarType::Double);
  double* row = data<double>(out);
  for (int64_t i = 1; i <= n; ++i, row += 4) {
    const Mark& m = (*all)[i];
    row[0] = static_cast<double>(m.stage);
    row[1] = m.hop;
    row[2] = std::chrono::duration<double>(m.at - (*all)[i - 1].at).count();
    row[3] = 0.0;
  }
  return out;
}

}  // namespace

void trace_mark(Stage stage, int hop) {
  if (marks) marks->push_back({stage, hop, Clock::now()});
}

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("trace", TORCH_BOX(&trace_cpu)); }

}  // namespace gnnbench
