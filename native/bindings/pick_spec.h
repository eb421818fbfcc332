// Validation of the arguments `str pick, Tensor[] tables, int[] walk` of every sampling operator.
//
//   tables  weighted_alias: [threshold int32 [num_edges], alias int32 [num_edges]] (uint32 bits);
//           weighted_prefix: [prefix int64 [num_edges]]; else empty. From `weight_tables`.
//   walk    random_walk: [walks, length, restart * 2^32]; else empty.
#pragma once

#include "bindings/checks.h"

namespace gnnbench {

inline Pick pick_from_name(const std::string& name) {
  static const std::pair<const char*, Pick> known[] = {
      {"reservoir", Pick::kReservoir},          {"floyd", Pick::kFloyd},
      {"fisher_yates", Pick::kFisherYates},     {"with_replacement", Pick::kWithReplacement},
      {"weighted_alias", Pick::kWeightedAlias}, {"weighted_prefix", Pick::kWeightedPrefix},
      {"random_walk", Pick::kRandomWalk},       {"reservoir_thinned", Pick::kReservoirThinned},
  };
  std::string names;
  for (const auto& [text, pick] : known) {
    if (name == text) return pick;
    names += names.empty() ? "" : ", ";
    names += text;
  }
  fail("pick must be one of ", names, ", not '", name, "'");
}

// `address(tensor, name)` returns the pointer for the kernels and rejects a tensor that they cannot
// read.
template <class Address>
PickSpec pick_spec(const std::string& pick, const std::vector<Tensor>& tables,
                   const std::vector<int64_t>& walk, int64_t num_edges, const Address& address) {
  PickSpec spec{pick_from_name(pick), {nullptr, nullptr, nullptr}, {0, 0, 0}};
  const size_t wanted = spec.pick == Pick::kWeightedAlias    ? 2
                        : spec.pick == Pick::kWeightedPrefix ? 1
                                                             : 0;
  if (tables.size() != wanted) {
    fail("pick '", pick, "' takes ", wanted, " weight table(s), it was given ", tables.size());
  }
  for (const Tensor& t : tables) {
    check_layout(t, "weights", 1);
    check_dtype(t, "weights", wanted == 2 ? ScalarType::Int : ScalarType::Long);
    if (t.numel() != num_edges) {
      fail("weights must have one entry per edge, ", num_edges, ", it has ", t.numel());
    }
  }
  if (wanted == 2) {
    spec.tables.threshold = static_cast<const uint32_t*>(address(tables[0], "weights"));
    spec.tables.alias = static_cast<const uint32_t*>(address(tables[1], "weights"));
  } else if (wanted == 1) {
    spec.tables.prefix = static_cast<const int64_t*>(address(tables[0], "weights"));
  }
  if (spec.pick != Pick::kRandomWalk) {
    if (!walk.empty()) fail("pick '", pick, "' takes no walk");
    return spec;
  }
  if (walk.size() != 3)
    fail("walk must be (walks, length, restart), it has ", walk.size(), " items");
  if (walk[0] < 1) fail("walks must be at least 1, it is ", walk[0]);
  if (walk[1] < 1) fail("walk_length must be at least 1, it is ", walk[1]);
  if (walk[0] > kMaxVisits || walk[1] > kMaxVisits || walk[0] * walk[1] > kMaxVisits) {
    fail("walks times walk_length must be at most ", kMaxVisits, ", it is ", walk[0], " times ",
         walk[1]);
  }
  spec.walk = Walk{static_cast<uint32_t>(walk[0]), static_cast<uint32_t>(walk[1]),
                   check_u32(walk[2], "restart", int64_t{1} << 32)};
  return spec;
}

}  // namespace gnnbench
