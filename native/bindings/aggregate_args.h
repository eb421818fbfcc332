// The argument `mode` of the aggregation's operators, on both devices.
#pragma once

#include "bindings/checks.h"
#include "gnnbench/aggregate.h"

namespace gnnbench {

inline Aggregate aggregate_from_name(const std::string& name) {
  if (name == "sum") return Aggregate::kSum;
  if (name == "mean") return Aggregate::kMean;
  if (name == "gcn") return Aggregate::kGcn;
  fail("mode must be 'sum', 'mean' or 'gcn', not '", name, "'");
}

}  // namespace gnnbench
