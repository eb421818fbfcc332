// Stand-in features on the CPU: bitwise equal to SeededFeatures of
// gnnbench/datasets/generators/seeded.py.
#pragma once

#include <cstdint>

namespace gnnbench::seeded {

struct Spec {
  uint64_t key[2];         // of numpy's Philox, low word first
  const int64_t* labels;   // [num_nodes], -1 to classes - 1
  const int16_t* centres;  // [classes + 1, width], in 1/256; the last row is that of class -1
  int64_t classes;
  int64_t width;
};

// Writes rows [first, first + rows) of the table. Returns false where a label is not a class; the
// rows of its chunk are then undefined.
bool features(const Spec& spec, int64_t first, int64_t rows, float* out);

}  // namespace gnnbench::seeded
