// Synthetic twins on the CPU. Meanings of the parameters: gnnbench/twin.h and
// gnnbench/datasets/generators/twin.py.
#pragma once

#include <cstdint>

namespace gnnbench::twin {

struct GraphSpec {
  uint64_t key;
  uint32_t num_nodes;
  int64_t num_edges;  // directed, as stored
  bool symmetric;
  const int64_t* community_ptr;  // positions, [communities + 1]
  int64_t communities;
  const int64_t* region_ptr;  // communities, [regions + 1]
  int64_t regions;
  const int64_t* in_law;   // [kLawPoints]
  const int64_t* out_law;  // [kLawPoints]
  uint32_t in_positive, out_positive;
  uint32_t tied;
  uint64_t in_limit, out_limit, boost;  // arguments of level_weight
  const int64_t* level_edges;           // [kLevels], number of edges to draw per level
};

// Writes indptr [num_nodes + 1] and indices [num_edges], rows ascending. Id is int32_t or int64_t.
// Returns the number of edges generated, which is num_edges if the graph is possible.
template <class Id>
int64_t graph(const GraphSpec& spec, int64_t* indptr, Id* indices);

struct NodeSpec {
  uint64_t key;
  uint32_t num_nodes;
  const int64_t* community_ptr;
  int64_t communities;
  uint32_t num_classes;
};

// Labels of all ids; a share of `noise` / 65536 is drawn at random.
void labels(const NodeSpec& spec, uint32_t noise, int64_t* out);

// Splits of the given sizes, each ascending. `locality` moves the first `home` communities forward.
void splits(const NodeSpec& spec, int64_t home, uint32_t locality, uint32_t degree_bias,
            const int64_t sizes[3], int64_t* const out[3]);

// Rows [first, first + rows) of the feature table: (noise + signal * class pattern) / 256.
void features(const NodeSpec& spec, int32_t signal, int64_t first, int64_t rows, int64_t dim,
              float* out);

}  // namespace gnnbench::twin
