// The operator of stand-in features: schema, argument checks, launch.
#include "cpu/seeded/seeded.h"

#include "bindings/checks.h"
#include "bindings/cpu/memory.h"

namespace gnnbench {

namespace {

void seeded_features(std::vector<int64_t> key, Tensor labels, Tensor centres, int64_t first,
                     Tensor out) {
  if (key.size() != 2) fail("key must hold 2 words of 64 bits, it has ", key.size());
  check_cpu(labels, "labels");
  check_layout(labels, "labels", 1);
  check_dtype(labels, "labels", ScalarType::Long);
  check_cpu(centres, "centres");
  check_layout(centres, "centres", 2);
  check_dtype(centres, "centres", ScalarType::Short);
  check_cpu(out, "out");
  check_layout(out, "out", 2);
  check_dtype(out, "out", ScalarType::Float);
  const int64_t rows = out.size(0), width = out.size(1);
  check_range_of_rows(first, rows, labels.numel());
  if (width == 0) fail("out must have at least one column");
  if (centres.size(0) < 1 || centres.size(1) != width) {
    fail("centres must have one row of ", width, " values per class and one for label -1");
  }
  check_apart(out, "out", labels, "labels");
  check_apart(out, "out", centres, "centres");
  const seeded::Spec spec{{static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])},
                          data<const int64_t>(labels),
                          data<const int16_t>(centres),
                          centres.size(0) - 1,
                          width};
  if (!seeded::features(spec, first, rows, data<float>(out))) {
    fail_data("a label is outside -1..", spec.classes - 1);
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(gnnbench, m) {
  // Writes rows first, first + 1, ... of SeededFeatures to out float32 [rows, width]. key: the
  // words of numpy's Philox, low word first. labels int64 [num_nodes]. centres int16 [classes + 1,
  // width]; the last row is for label -1.
  m.def(
      "seeded_features(int[] key, Tensor labels, Tensor centres, int first, Tensor(a!) out) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("seeded_features", TORCH_BOX(&seeded_features));
}

}  // namespace gnnbench
