// The engine of Fused-Map (FastGL, ASPLOS'24, section 4.3) and of FastSample's fused sampler: it
// enqueues a whole batch without synchronising with the host. Plain pointers, no torch.
//
//   clear    initialises memory, unless the previous batch left it so (FusedReset, versions)
//   begin    the seeds become the nodes 0, 1, ...
//   hop      one kernel: picks, offsets, neighbours, new ids, local ids; posts the previous hop's
//            sizes
//   finish   posts all sizes; then assigns ids to edges that met a node before it had its id
//
// One map serves all hops: a node keeps its id, so only new neighbours get one, and consecutive
// blocks nest and share one array of nodes.
//
// Lower bound for R-MAT with 2.1 M nodes and 123 M edges, int32, batch 8000, 15/10/5 (1.27 M edges,
// 220 k rows, 275 k nodes): 1.27 M random reads of neighbours in 492 MB (38.6 G/s: 33 us), as many
// probes of a 5.5 MB table in L2 (75 G/s: 17 us), 275 k claims, 220 k pairs of offsets in 17 MB,
// and 16 MB streamed (5 us). About 60 us in 6 launches, of which the hops are sequential.
#pragma once

#include "cuda/common/notification.h"
#include "cuda/common/vertices.h"
#include "gnnbench/csc.h"
#include "gnnbench/fault.h"
#include "gnnbench/pick.h"

namespace gnnbench::cuda {

// Results of a launch for later launches: state 0 belongs to the seeds, h + 1 to hop h.
struct alignas(16) FusedState {
  int64_t edges;    // drawn in the hop
  int32_t nodes;    // new nodes
  uint32_t faults;  // Fault, bitwise or
};

struct alignas(16) FusedControl {
  uint64_t key;
  uint64_t batch;
  FusedState states[1];  // [hops + 1]
};

// Open addressing with linear probing, 2 to 2.5 slots per node; initially all bytes are 0xFF.
//
//   int32 ids   entries [slots] of 8 bytes: key << 32 | local id
//   int64 ids   keys int64 [slots], then local ids int32 [slots]
//
// Or, for int32 ids, entries of 8 bytes that are not cleared: other versions are empty.
//
// The dense map, int32 [num_nodes], is -1 before and after a batch.
struct FusedTable {
  void* entries;     // null: dense
  int64_t slots;     // below 2^31
  int32_t* dense;    // null: hash table
  uint32_t version;  // int32 ids, see gnnbench/fused_entry.h; 0: the table was cleared
};

template <class Id>
int64_t fused_table_bytes(int64_t slots) {
  return slots * static_cast<int64_t>(sizeof(Id) + sizeof(int32_t));
}

struct FusedHop {
  int32_t* indptr;     // [row_capacity + 1]
  int32_t* indices;    // [edge_capacity]
  int64_t* positions;  // [edge_capacity] or null
  float* weights;      // [edge_capacity] for random_walk, else null
  int64_t row_capacity;
  int64_t node_capacity;  // checked after the hop
  int64_t edge_capacity;
  uint32_t fanout;
  uint64_t* tiles;  // one per tile, initially zero
};

// Memory that the last kernel zeroes for a later batch; a multiple of 16 bytes.
struct FusedReset {
  void* at;
  int64_t bytes;
};

template <class Id>
struct FusedBatch {
  Csc<Id> graph;
  PickSpec pick;
  Vertices seeds;
  int64_t num_seeds;
  uint64_t key;
  uint32_t batch;
  const int64_t* place;  // null, or on the device: key, batch, number of seeds
  bool only_new;         // frontier 'new': all hops share one CSC
  FusedTable table;
  FusedControl* control;  // initially zero
  Id* nodes;              // [max_nodes]
  int64_t max_nodes;
  uint32_t hops;
  FusedReset resets[2];
};

// Bytes to zero (from `zero`) and to fill with 0xFF (from `fill`) before a batch. Both are
// multiples of 16 and aligned to 16.
struct FusedClear {
  void* zero;
  int64_t zero_bytes;
  void* fill;
  int64_t fill_bytes;
};

// Rows of a tile; a hop has blocks_for(row_capacity, ...) tiles. Returns 0 if a row of this pick
// and fanout does not fit shared memory.
template <class Id>
int64_t fused_tile_rows(const PickSpec& pick, int64_t num_edges, uint32_t fanout);

void fused_clear(Launch launch, const FusedClear& clear);

template <class Id>
void fused_begin(Launch launch, const FusedBatch<Id>& batch);

template <class Id>
void fused_hop(Launch launch, const FusedBatch<Id>& batch, const FusedHop& hop, uint32_t number);

// Posts the sizes, int64 [2 hops + 1]: per hop the nodes known after it and its edges, then the
// faults.
template <class Id>
void fused_finish(Launch launch, const FusedBatch<Id>& batch, const FusedHop* hops, uint32_t count,
                  Notification sizes);

// ---- the id map alone ----

// Neighbours of a hop and their local ids.
template <class Id>
struct FusedNames {
  const Id* neighbors;  // [n]
  int32_t* local;       // [n]
  int64_t n;
};

// dst become the nodes 0, 1, ..., followed by the new neighbours of each hop; nodes [max_nodes].
// Sizes are posted as for a batch whose edges are the neighbours. `faults`, unless null, are those
// of the kernels that drew the neighbours.
template <class Id>
void fused_id_map(Launch launch, Vertices dst, int64_t num_dst, const FusedNames<Id>* hops,
                  uint32_t count, FusedTable table, FusedControl* control, FusedClear clear,
                  Id* nodes, int64_t max_nodes, const int64_t* drawn_faults, Notification sizes);

}  // namespace gnnbench::cuda
