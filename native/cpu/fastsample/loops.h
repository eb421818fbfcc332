// The second loop of FastSample's Algorithm 1: gives each new node the next local id. There are no
// vector instructions of its own and no prefetching. With one worker it is the printed loop.
// Several workers, which the paper does not print, first list the nodes that each of them met
// first, then number the lists one after the other, then look every edge up.
//
// Differs from the printed algorithm: the map is not filled with -1 for each hop, and destinations
// have the first ids, as in DGL's blocks.
#pragma once

#include <cstdint>

namespace gnnbench {

constexpr int64_t kLoopEdges = 4096;  // smallest number of edges for another worker

// Number of workers for a hop of `edges`.
int64_t loop_workers(int64_t edges);

template <class Id>
struct LoopNames {
  int32_t* map;       // [num_nodes], a node's local id or -1
  const Id* sampled;  // [edges]
  int64_t edges;
  int64_t known;    // number of local ids assigned before
  int64_t workers;  // loop_workers(edges)
  Id* fresh;        // [edges] scratch: new nodes, those of worker w from first_edge(w) on
  int64_t* found;   // [workers] scratch: how many new nodes each worker has
  int32_t* out;     // [edges], local ids

  int64_t first_edge(int64_t worker) const { return edges * worker / workers; }
};

// Lists the new nodes. Returns the number of local ids, old and new.
template <class Id>
int64_t loop_claim(const LoopNames<Id>& names);

// Writes the new nodes to nodes [known, ...) and the local ids of all edges.
template <class Id>
void loop_name(const LoopNames<Id>& names, Id* nodes);

}  // namespace gnnbench
