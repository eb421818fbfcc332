// The kernel of a hop for one kind of map; hop_*.cu instantiate it.
//
// A block processes a tile of consecutive rows, with a group of lanes per row:
//
//   degrees -> scan -> publish the tile's sum     picks, first neighbours           edges
//                      warp 0: ----------------> look back over earlier tiles ->
//
// The tile's offset comes from a single-pass scan over the tiles (Merrill & Garland, "Single-pass
// Parallel Prefix Scan with Decoupled Look-back", 2016), which overlaps the reads of neighbours. As
// in CUB's scan, tiles are blocks in order: a block waits only for blocks of smaller index, which
// start earlier.
#pragma once

#include <algorithm>

#include "cuda/fused_map/new_ids.cuh"
#include "cuda/fused_map/table.cuh"
#include "cuda/fused_map/tiles.cuh"
#include "cuda/pick/fisher_yates.cuh"
#include "cuda/pick/floyd.cuh"
#include "cuda/pick/independent.cuh"
#include "cuda/pick/reservoir.cuh"
#include "cuda/pick/walk.cuh"

namespace gnnbench::cuda {

constexpr int kHopThreads = 256;
constexpr int kMostTileRows = 32;           // warp 0 scans a tile
constexpr uint32_t kHubDraws = 1024;        // larger reservoirs are filled by a whole block
constexpr size_t kTileBytes = 24 << 10;     // of shared memory, if a row fits
constexpr size_t kMostRowBytes = 64 << 10;  // available on every GPU of compute capability >= 8.0

template <class Map>
struct FusedHopJob {
  using Id = typename Map::Id;
  Csc<Id> graph;
  WeightTables tables;
  Walk walk;
  Map map;
  FusedControl* control;
  Id* nodes;
  uint32_t max_nodes;
  uint32_t node_capacity;
  int64_t edge_capacity;  // of the hop
  int32_t* indptr;
  int32_t* indices;
  int64_t* positions;
  float* weights;
  uint64_t* tiles;
  uint32_t fanout;
  uint32_t hop;
  uint32_t tile_rows;
  uint32_t row_bytes;  // shared memory per row
  uint32_t width_log;  // log2 of the lanes per group
  bool only_new;
  bool last;  // last hop: no new node becomes a row
};

// Results of earlier launches.
struct HopStart {
  uint32_t known;  // nodes
  uint32_t first;  // known nodes that are not rows of this hop
  int64_t edges;   // edges of earlier hops in the arrays
  uint32_t faults;
};

__device__ inline HopStart hop_start(const FusedControl* control, uint32_t hop, bool only_new) {
  HopStart start{0, 0, 0, 0};
  for (uint32_t h = 0; h <= hop; ++h) {
    const FusedState state = control->states[h];
    if (only_new) {
      start.first = start.known;
      start.edges += state.edges;
    }
    start.known += static_cast<uint32_t>(state.nodes);
    start.faults |= state.faults;
  }
  return start;
}

// ---- the kernel ----

// A thinned reservoir has few cells, however long its row.
__device__ __forceinline__ bool is_hub(Pick pick, uint32_t degree, uint32_t fanout) {
  return pick == Pick::kReservoir && degree - fanout > kHubDraws;
}

// Fills a row's slots. The whole block makes the offers of a hub's reservoir. `spec.pick` is kPick.
template <Pick kPick>
__device__ inline void pick_slots(const Lanes& g, const CscRow& row, bool picks, uint32_t fanout,
                                  const Draws& draws, const PickSpec& spec, uint32_t* slots) {
  if constexpr (kPick == Pick::kFloyd) {
    if (!__any_sync(kAllLanes, picks)) return;
    fanout <= 32 ? floyd_lanes(g, picks, row.degree, fanout, draws, slots)
                 : floyd_warp(g.lane, row.degree, fanout, draws, slots);
  } else if constexpr (kPick == Pick::kFisherYates) {
    if (!__any_sync(kAllLanes, picks)) return;
    fanout <= 32 ? fisher_yates_lanes(g, picks, row.degree, fanout, draws, slots)
                 : fisher_yates_warp(g.lane, row.degree, fanout, draws, slots, slots + fanout,
                                     slots + 2 * fanout);
  } else if constexpr (takes_offers(kPick)) {
    if (picks) fill_slots(g, fanout, slots);
    __syncwarp();
    if (picks && !is_hub(kPick, row.degree, fanout)) {
      offer_row(kPick, g, draws, row.degree, fanout, slots);
    }
  } else if (picks) {
    CachedDraws drawn{draws};
    for (uint32_t s = g.lane; s < fanout; s += g.width) {
      slots[s] = independent_slot(spec, row, s, drawn);
    }
  }
}

template <Pick kPick, class Map>
__global__ void __launch_bounds__(kHopThreads)
    hop_kernel(const __grid_constant__ FusedHopJob<Map> job) {
  using Id = typename Map::Id;
  constexpr bool kWalks = kPick == Pick::kRandomWalk;
  const bool without = without_replacement(kPick);
  extern __shared__ __align__(16) char row_memory[];  // [tile_rows][row_bytes]
  __shared__ uint32_t row_offsets[kMostTileRows];     // counts at first
  __shared__ uint32_t hub_degrees[kMostTileRows];     // 0: not a hub
  __shared__ int64_t hub_vertices[kMostTileRows];
  __shared__ int64_t tile_offset;
  __shared__ uint32_t most;  // maximum edges of a row in the tile
  __shared__ NewIds new_ids;

  FusedState& state = job.control->states[job.hop + 1];
  const HopStart start = hop_start(job.control, job.hop, job.only_new);
  const uint32_t rows = start.known - start.first;
  const uint32_t tile_begin = blockIdx.x * job.tile_rows;
  if (start.faults) return;  // faults of earlier launches; uniform over all blocks
  if (tile_begin >= rows) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      job.indptr[start.first] = static_cast<int32_t>(start.edges);
    }
    return;
  }
  const uint32_t tile_rows = min(job.tile_rows, rows - tile_begin);

  // Rows.
  const PickSpec spec{kPick, job.tables, job.walk};
  const Lanes g{1u << job.width_log, threadIdx.x & ((1u << job.width_log) - 1)};
  const uint32_t group = threadIdx.x >> job.width_log;
  int64_t vertex = 0;
  CscRow row{0, 0};
  uint32_t count = 0;
  if (group < tile_rows) {
    vertex = job.nodes[start.first + tile_begin + group];
    if (job.graph.read_row(vertex, row)) {
      count = pick_count(spec, row.begin, row.degree, job.fanout);
    } else {
      report_fault(&state.faults, Fault::kBadRow);
    }
  }
  const bool picks = without ? row.degree > job.fanout : count > 0;
  const Draws draws{job.control->key, static_cast<uint64_t>(vertex), job.hop,
                    static_cast<uint32_t>(job.control->batch)};
  // Rows that are taken whole have no memory if the fanout exceeds every degree.
  char* const memory = row_memory + group * job.row_bytes;
  uint32_t* const slots = reinterpret_cast<uint32_t*>(memory);
  const Visits<Id> visits(memory, kWalks ? job.walk.visits() : 0);
  if constexpr (kWalks) {  // the number of nodes is known only after the walks
    const Fault fault = walk_lanes(g, job.graph, vertex, row, picks, job.walk, draws, visits);
    if (fault != Fault::kNone) report_fault(&state.faults, fault);
    count = rank_visits(g, picks, job.walk.visits(), job.fanout, visits);
  }

  // Offsets within the tile, and the tile's sum.
  bool hub = false;
  if (g.lane == 0 && group < job.tile_rows) {
    row_offsets[group] = count;
    if constexpr (kPick == Pick::kReservoir) {
      hub = picks && is_hub(kPick, row.degree, job.fanout);
      hub_degrees[group] = hub ? row.degree : 0;
      hub_vertices[group] = vertex;
    }
  }
  if (threadIdx.x == 0) new_ids.requested = 0;
  const bool any_hub = __syncthreads_or(hub);
  uint64_t sum = 0;  // the tile's sum, in warp 0
  uint32_t offset = 0;
  if (threadIdx.x < 32) {
    const uint32_t mine = threadIdx.x < tile_rows ? row_offsets[threadIdx.x] : 0;
    const uint32_t largest = __reduce_max_sync(kAllLanes, mine);
    // 32-bit sums suffice: an overflow exceeds every capacity, which the 64-bit sum detects.
    uint64_t inclusive = mine;
    for (int step = 1; step < 32; step *= 2) {
      const uint64_t left = __shfl_up_sync(kAllLanes, inclusive, step);
      if (threadIdx.x >= static_cast<unsigned>(step)) inclusive += left;
    }
    sum = __shfl_sync(kAllLanes, inclusive, 31);
    offset = static_cast<uint32_t>(inclusive - mine);
    if (threadIdx.x == 0) {
      most = largest;
      store_relaxed(job.tiles + blockIdx.x, (blockIdx.x == 0 ? kTilePrefix : kTileSum) | sum);
    }
  }

  if constexpr (!kWalks) {
    pick_slots<kPick>(g, row, picks, job.fanout, draws, spec, slots);
    if constexpr (kPick == Pick::kReservoir) {
      if (any_hub) {
        __syncthreads();
        for (uint32_t r = 0; r < tile_rows; ++r) {
          if (hub_degrees[r] == 0) continue;  // uniform over all threads
          const Draws of_hub{draws.key, static_cast<uint64_t>(hub_vertices[r]), draws.hop,
                             draws.batch};
          offer_row(kPick, Block<kHopThreads>{}, of_hub, hub_degrees[r], job.fanout,
                    reinterpret_cast<uint32_t*>(row_memory + r * job.row_bytes));
        }
        __syncthreads();
      }
    }
    __syncwarp();
  }

  const auto position = [&](uint32_t s) {
    uint32_t at = picks ? slots[s] : s;
    if (kPick == Pick::kWeightedAlias && at >= row.degree) {
      report_fault(&state.faults, Fault::kBadTables);
      at = 0;
    }
    return row.begin + at;
  };
  const auto neighbor = [&](uint32_t s) -> Id {
    if (s >= count) return 0;
    if constexpr (kWalks) return visits.ids[visits.order[s]];
    return __ldg(job.graph.indices + position(s));
  };

  Id next = neighbor(g.lane);
  if (threadIdx.x < 32) {
    const uint64_t before = look_back(job.tiles, blockIdx.x, sum);
    if (threadIdx.x < tile_rows) {
      row_offsets[threadIdx.x] = offset;
      int32_t* const indptr = job.indptr + start.first + tile_begin;
      const int64_t base = start.edges + static_cast<int64_t>(before);
      indptr[threadIdx.x] = static_cast<int32_t>(base + offset);
      if (threadIdx.x == 0) {
        tile_offset = static_cast<int64_t>(before);
        if (tile_begin + tile_rows == rows) {
          const int64_t total = static_cast<int64_t>(before + sum);
          indptr[tile_rows] = static_cast<int32_t>(start.edges + total);
          state.edges = total;
          if (total > job.edge_capacity) report_fault(&state.faults, Fault::kEdgesFull);
        }
      }
    }
  }
  __syncthreads();

  // Edges.
  const int64_t in_hop = tile_offset + (group < tile_rows ? row_offsets[group] : 0);
  for (uint32_t step = 0; step < most; step += g.width) {
    const uint32_t s = step + g.lane;
    const Id id = next;
    next = neighbor(s + g.width);
    const bool fits = in_hop + s < job.edge_capacity;
    const bool valid = job.graph.has_node(id);
    const int64_t edge = start.edges + in_hop + s;
    int32_t local = 0;
    uint32_t at = 0;
    if (s < count) {
      if (!valid) report_fault(&state.faults, Fault::kBadNeighbor);
      if (fits && valid) local = job.map.enter(id, edge, &at);
      if (local == kTableFull) report_fault(&state.faults, Fault::kNodesFull);
    }
    const bool is_new[1] = {local == kNew};
    uint32_t numbers[1];
    new_numbers(is_new, &state.nodes, new_ids, numbers);
    if (is_new[0]) {
      const uint32_t number = start.known + numbers[0];
      local = static_cast<int32_t>(number);
      const bool recorded = number < job.max_nodes;
      if (recorded) job.nodes[number] = id;
      if (number >= job.node_capacity) report_fault(&state.faults, Fault::kNodesFull);
      job.map.name(at, id, number, recorded);
      if (!job.last) fetch_ahead(job.graph.indptr + id);
    }
    if (s < count && fits) {
      job.indices[edge] = local;
      if constexpr (kWalks) {
        job.weights[edge] = static_cast<float>(visits.counts[visits.order[s]]);
      } else if (job.positions != nullptr) {
        job.positions[edge] = position(s);
      }
    }
  }
}

// ---- the launcher ----

struct HopShape {
  uint32_t width_log;
  uint32_t tile_rows;  // 0: a row does not fit
  uint32_t row_bytes;
};

inline HopShape hop_shape(const PickSpec& pick, int64_t id_bytes, int64_t num_edges,
                          uint32_t fanout) {
  uint64_t bytes = 0;
  uint64_t edges = fanout;
  if (pick.pick == Pick::kRandomWalk) {
    const uint64_t visits = pick.walk.visits();
    edges = fanout < visits ? fanout : visits;
    bytes = visits * (id_bytes + 2) + edges * 2;
  } else if (!without_replacement(pick.pick) || (fanout < num_edges && fanout != kAllNeighbors)) {
    // In the other cases rows are too short to need slots.
    bytes = uint64_t{4} * fanout * (pick.pick == Pick::kFisherYates && fanout > 32 ? 3 : 1);
  }
  bytes = (bytes + 7) / 8 * 8;
  HopShape shape{3, 0, static_cast<uint32_t>(bytes)};
  if (bytes > kMostRowBytes) return shape;
  while (shape.width_log < 5 && (uint64_t{1} << shape.width_log) < edges) ++shape.width_log;
  shape.tile_rows = kHopThreads >> shape.width_log;
  if (bytes > 0 && shape.tile_rows * bytes > kTileBytes) {
    shape.tile_rows = static_cast<uint32_t>(kTileBytes / bytes);
  }
  if (shape.tile_rows == 0) shape.tile_rows = 1;
  return shape;
}

template <class Map>
void launch_hop(Launch launch, const FusedBatch<typename Map::Id>& batch, const Map& map,
                const FusedHop& hop, uint32_t number) {
  using Id = typename Map::Id;
  const HopShape shape = hop_shape(batch.pick, sizeof(Id), batch.graph.num_edges, hop.fanout);
  const FusedHopJob<Map> job{batch.graph,
                             batch.pick.tables,
                             batch.pick.walk,
                             map,
                             batch.control,
                             batch.nodes,
                             static_cast<uint32_t>(batch.max_nodes),
                             static_cast<uint32_t>(hop.node_capacity),
                             hop.edge_capacity,
                             hop.indptr,
                             hop.indices,
                             hop.positions,
                             hop.weights,
                             hop.tiles,
                             hop.fanout,
                             number,
                             shape.tile_rows,
                             shape.row_bytes,
                             shape.width_log,
                             batch.only_new,
                             number + 1 == batch.hops};
  const size_t bytes = size_t{shape.tile_rows} * shape.row_bytes;
  const int64_t blocks = std::max<int64_t>(1, blocks_for(hop.row_capacity, shape.tile_rows));
  const auto run = [&](auto kernel) {
    if (bytes > kTileBytes) {
      GNNBENCH_CUDA_CALL(launch,
                         cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(kMostRowBytes)));
    }
    kernel<<<blocks, kHopThreads, bytes, launch.stream>>>(job);
  };
  switch (batch.pick.pick) {
    case Pick::kReservoir: run(hop_kernel<Pick::kReservoir, Map>); break;
    case Pick::kReservoirThinned: run(hop_kernel<Pick::kReservoirThinned, Map>); break;
    case Pick::kFloyd: run(hop_kernel<Pick::kFloyd, Map>); break;
    case Pick::kFisherYates: run(hop_kernel<Pick::kFisherYates, Map>); break;
    case Pick::kWithReplacement: run(hop_kernel<Pick::kWithReplacement, Map>); break;
    case Pick::kWeightedAlias: run(hop_kernel<Pick::kWeightedAlias, Map>); break;
    case Pick::kWeightedPrefix: run(hop_kernel<Pick::kWeightedPrefix, Map>); break;
    case Pick::kRandomWalk: run(hop_kernel<Pick::kRandomWalk, Map>); break;
  }
  GNNBENCH_CUDA_LAUNCHED(launch, "hop_kernel");
}

}  // namespace gnnbench::cuda
