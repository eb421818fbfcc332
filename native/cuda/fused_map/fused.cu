#include "cuda/common/publish.cuh"
#include "cuda/fused_map/hop.cuh"

namespace gnnbench::cuda {

#define GNNBENCH_HOPS_OF(Map)                                                          \
  extern template void launch_hop<Map>(Launch, const FusedBatch<Map::Id>&, const Map&, \
                                       const FusedHop&, uint32_t)
GNNBENCH_HOPS_OF(PackedTable);
GNNBENCH_HOPS_OF(VersionedEntries);
GNNBENCH_HOPS_OF(WideTable);
GNNBENCH_HOPS_OF(DenseMap<int32_t>);
GNNBENCH_HOPS_OF(DenseMap<int64_t>);
#undef GNNBENCH_HOPS_OF

namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // edges in flight per thread

// Calls `use` with the map of a batch.
template <class Id, class Use>
void with_map(const FusedTable& table, const Use& use) {
  if (table.dense != nullptr) return use(DenseMap<Id>{table.dense});
  const uint32_t slots = static_cast<uint32_t>(table.slots);
  if constexpr (sizeof(Id) == 4) {
    auto* entries = static_cast<uint64_t*>(table.entries);
    table.version == 0 ? use(PackedTable{entries, slots})
                       : use(VersionedEntries{entries, slots, FusedEntries::of(table.version)});
  } else {
    auto* keys = static_cast<unsigned long long*>(table.entries);
    use(WideTable{keys, reinterpret_cast<int32_t*>(keys + slots), slots});
  }
}

__global__ void __launch_bounds__(kThreads) clear_kernel(FusedClear clear) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  uint4* const zero = static_cast<uint4*>(clear.zero);
  for (int64_t i = first; i < clear.zero_bytes / 16; i += stride) zero[i] = make_uint4(0, 0, 0, 0);
  uint4* const fill = static_cast<uint4*>(clear.fill);
  const uint4 ones = make_uint4(~0u, ~0u, ~0u, ~0u);
  for (int64_t i = first; i < clear.fill_bytes / 16; i += stride) fill[i] = ones;
}

template <class Map>
struct SeedsJob {
  using Id = typename Map::Id;
  Vertices seeds;
  int64_t num_seeds;
  int64_t num_nodes;
  uint64_t key;
  uint32_t batch;
  const int64_t* place;
  const int64_t* indptr;  // of rows of the next hop, or null
  const int64_t* faults;  // of earlier launches, or null
  Map map;
  FusedControl* control;
  Id* nodes;
};

template <class Map>
__global__ void __launch_bounds__(kThreads) seeds_kernel(SeedsJob<Map> job) {
  using Id = typename Map::Id;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  FusedState& state = job.control->states[0];
  int64_t count = job.num_seeds;
  bool valid = true;
  if (job.place != nullptr) {
    valid = job.place[2] >= 0 && job.place[2] <= count;
    count = valid ? job.place[2] : 0;
  }
  if (i == 0) {
    job.control->key = job.place ? static_cast<uint64_t>(job.place[0]) : job.key;
    job.control->batch = job.place ? static_cast<uint64_t>(job.place[1]) : job.batch;
    state.nodes = static_cast<int32_t>(count);
    if (!valid) report_fault(&state.faults, Fault::kBadSeed);
    if (job.faults != nullptr) report_fault(&state.faults, static_cast<Fault>(*job.faults));
  }
  if (i >= count) return;
  const int64_t id = job.seeds[i];
  valid = id >= 0 && id < job.num_nodes;
  job.nodes[i] = static_cast<Id>(valid ? id : -1);
  uint32_t at = 0;
  if (!valid) {
    report_fault(&state.faults, Fault::kBadSeed);
  } else if (job.map.enter(static_cast<Id>(id), i, &at) == kNew) {
    job.map.name(at, static_cast<Id>(id), static_cast<uint32_t>(i), true);
    if (job.indptr != nullptr) fetch_ahead(job.indptr + id);
  } else {
    report_fault(&state.faults, Fault::kRepeatedSeed);
  }
}

// ---- finish ----

constexpr int kPieces = 8;  // ranges of edges per launch

// Edges of the states [first, last): of a hop, or with frontier 'new' of the batch.
struct Piece {
  int32_t* indices;
  uint32_t first;
  uint32_t last;
};

template <class Map>
struct FinishJob {
  using Id = typename Map::Id;
  Map map;
  FusedControl* control;
  uint32_t hops;
  Id* nodes;
  int64_t max_nodes;
  Piece pieces[kPieces];  // one per blockIdx.y
  Notification sizes;     // null if an earlier launch reported them
  bool last;              // last launch of the batch: dense entries may be reset
  FusedReset resets[2];
};

__device__ void report_sizes(const FusedControl* control, uint32_t hops, uint32_t faults,
                             const Notification& out) {
  int64_t known = control->states[0].nodes;
  for (uint32_t h = 0; h < hops; ++h) {
    const FusedState state = control->states[h + 1];
    known += state.nodes;
    out.numbers[2 * h] = known;
    out.numbers[2 * h + 1] = state.edges;
  }
  out.numbers[2 * hops] = faults;
  publish(out);
}

template <class Id>
constexpr bool kIsDense = false;
template <class Id>
constexpr bool kIsDense<DenseMap<Id>> = true;

template <class Map>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const __grid_constant__ FinishJob<Map> job) {
  uint32_t faults = 0;
  int64_t known = 0;
  for (uint32_t h = 0; h <= job.hops; ++h) {
    faults |= job.control->states[h].faults;
    known += job.control->states[h].nodes;
  }
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  if (thread == 0 && blockIdx.y == 0 && job.sizes.numbers != nullptr) {
    report_sizes(job.control, job.hops, faults, job.sizes);
  }
  if (faults == 0) {
    const Piece piece = job.pieces[blockIdx.y];
    int64_t edges = 0;
    for (uint32_t h = piece.first; h < piece.last; ++h) edges += job.control->states[h].edges;
    for (int64_t first = thread; first < edges; first += kUnroll * threads) {
      int32_t local[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t e = first + u * threads;
        local[u] = e < edges ? piece.indices[e] : 0;
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {  // a note never points to its own edge
        if (local[u] < 0) {
          piece.indices[first + u * threads] = job.map.resolve(local[u], piece.indices);
        }
      }
    }
  }
  if (!job.last || blockIdx.y != 0) return;
  for (const FusedReset& reset : job.resets) {  // this kernel uses none of this memory
    uint4* const zero = static_cast<uint4*>(reset.at);
    for (int64_t i = thread; i < reset.bytes / 16; i += threads) zero[i] = make_uint4(0, 0, 0, 0);
  }
  if constexpr (kIsDense<Map>) {
    const int64_t recorded = known < job.max_nodes ? known : job.max_nodes;
    for (int64_t i = thread; i < recorded; i += threads) job.map.reset(job.nodes[i]);
  }
}

template <class Map>
void launch_finish(Launch launch, FinishJob<Map> job, uint32_t pieces, int64_t most_edges) {
  const int64_t blocks = std::clamp<int64_t>(blocks_for(most_edges, kThreads * kUnroll), 1, 8192);
  finish_kernel<Map>
      <<<dim3(static_cast<unsigned>(blocks), pieces), kThreads, 0, launch.stream>>>(job);
  GNNBENCH_CUDA_LAUNCHED(launch, "finish_kernel");
}

// ---- the id map alone ----

template <class Map>
__global__ void __launch_bounds__(kThreads)
    name_kernel(Map map, FusedNames<typename Map::Id> names, FusedControl* control, uint32_t hop,
                typename Map::Id* nodes, int64_t max_nodes) {
  using Id = typename Map::Id;
  __shared__ NewIds new_ids;
  const int64_t n = names.n;
  if (threadIdx.x == 0) new_ids.requested = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  uint32_t known = 0;
  for (uint32_t h = 0; h <= hop; ++h) known += static_cast<uint32_t>(control->states[h].nodes);
  FusedState& state = control->states[hop + 1];
  Id ids[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t e = first + u * kThreads;
    ids[u] = e < n ? names.neighbors[e] : 0;
  }
  int32_t mine[kUnroll];
  uint32_t at[kUnroll];
  bool is_new[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t e = first + u * kThreads;
    mine[u] = 0;
    if (e < n && ids[u] < 0) report_fault(&state.faults, Fault::kNegativeId);
    if (e < n && ids[u] >= 0) mine[u] = map.enter(ids[u], e, &at[u]);
    if (mine[u] == kTableFull) report_fault(&state.faults, Fault::kNodesFull);
    is_new[u] = mine[u] == kNew;
  }
  uint32_t numbers[kUnroll];
  new_numbers(is_new, &state.nodes, new_ids, numbers);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t e = first + u * kThreads;
    if (is_new[u]) {
      const uint32_t number = known + numbers[u];
      mine[u] = static_cast<int32_t>(number);
      const bool fits = number < max_nodes;
      if (fits) nodes[number] = ids[u];
      if (!fits) report_fault(&state.faults, Fault::kNodesFull);
      map.name(at[u], ids[u], number, fits);
    }
    if (e < n) names.local[e] = mine[u];
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) state.edges = n;
}

template <class Map>
void begin_seeds(Launch launch, const SeedsJob<Map>& job) {
  const int64_t blocks = std::max<int64_t>(1, blocks_for(job.num_seeds, kThreads));
  seeds_kernel<Map><<<blocks, kThreads, 0, launch.stream>>>(job);
  GNNBENCH_CUDA_LAUNCHED(launch, "seeds_kernel");
}

}  // namespace

template <class Id>
int64_t fused_tile_rows(const PickSpec& pick, int64_t num_edges, uint32_t fanout) {
  return hop_shape(pick, sizeof(Id), num_edges, fanout).tile_rows;
}

void fused_clear(Launch launch, const FusedClear& clear) {
  const int64_t most = clear.zero_bytes > clear.fill_bytes ? clear.zero_bytes : clear.fill_bytes;
  const int64_t blocks = std::clamp<int64_t>(blocks_for(most / 16, kThreads), 1, 2048);
  clear_kernel<<<blocks, kThreads, 0, launch.stream>>>(clear);
  GNNBENCH_CUDA_LAUNCHED(launch, "clear_kernel");
}

template <class Id>
void fused_begin(Launch launch, const FusedBatch<Id>& batch) {
  with_map<Id>(batch.table, [&](const auto& map) {
    begin_seeds(launch,
                SeedsJob<std::decay_t<decltype(map)>>{
                    batch.seeds, batch.num_seeds, batch.graph.num_nodes, batch.key, batch.batch,
                    batch.place, batch.graph.indptr, nullptr, map, batch.control, batch.nodes});
  });
}

template <class Id>
void fused_hop(Launch launch, const FusedBatch<Id>& batch, const FusedHop& hop, uint32_t number) {
  with_map<Id>(batch.table, [&](const auto& map) { launch_hop(launch, batch, map, hop, number); });
}

template <class Id>
void fused_finish(Launch launch, const FusedBatch<Id>& batch, const FusedHop* hops, uint32_t count,
                  Notification sizes) {
  with_map<Id>(batch.table, [&](const auto& map) {
    const uint32_t pieces = batch.only_new ? 1 : count;
    for (uint32_t begin = 0; begin < pieces; begin += kPieces) {
      const uint32_t here = pieces - begin < kPieces ? pieces - begin : kPieces;
      FinishJob<std::decay_t<decltype(map)>> job{map,
                                                 batch.control,
                                                 count,
                                                 batch.nodes,
                                                 batch.max_nodes,
                                                 {},
                                                 begin == 0 ? sizes : Notification{},
                                                 begin + here == pieces,
                                                 {batch.resets[0], batch.resets[1]}};
      int64_t most = 0;  // maximum edges of a piece
      for (uint32_t p = 0; p < here; ++p) {
        const uint32_t h = begin + p;
        job.pieces[p] = batch.only_new ? Piece{hops[0].indices, 1, count + 1}
                                       : Piece{hops[h].indices, h + 1, h + 2};
        most = std::max(most, hops[h].edge_capacity);
      }
      for (uint32_t h = 1; batch.only_new && h < count; ++h) most += hops[h].edge_capacity;
      launch_finish(launch, job, here, most);
    }
  });
}

template <class Id>
void fused_id_map(Launch launch, Vertices dst, int64_t num_dst, const FusedNames<Id>* hops,
                  uint32_t count, FusedTable table, FusedControl* control, FusedClear clear,
                  Id* nodes, int64_t max_nodes, const int64_t* drawn_faults, Notification sizes) {
  constexpr int64_t kAnyNode = sizeof(Id) == 4 ? INT32_MAX : INT64_MAX;
  fused_clear(launch, clear);
  with_map<Id>(table, [&](const auto& map) {
    using Map = std::decay_t<decltype(map)>;
    begin_seeds(launch, SeedsJob<Map>{dst, num_dst, kAnyNode, 0, 0, nullptr, nullptr, drawn_faults,
                                      map, control, nodes});
    for (uint32_t h = 0; h < count; ++h) {
      const int64_t blocks = std::max<int64_t>(1, blocks_for(hops[h].n, kThreads * kUnroll));
      name_kernel<Map>
          <<<blocks, kThreads, 0, launch.stream>>>(map, hops[h], control, h, nodes, max_nodes);
      GNNBENCH_CUDA_LAUNCHED(launch, "name_kernel");
    }
    for (uint32_t begin = 0; begin == 0 || begin < count; begin += kPieces) {
      const uint32_t here = std::min<uint32_t>(kPieces, count - begin);
      FinishJob<Map> job{map, control, count, nodes, max_nodes, {}, {}, begin + here == count, {}};
      if (begin == 0) job.sizes = sizes;
      int64_t most = 0;
      for (uint32_t p = 0; p < here; ++p) {
        const uint32_t h = begin + p;
        job.pieces[p] = Piece{hops[h].local, h + 1, h + 2};
        most = std::max(most, hops[h].n);
      }
      launch_finish(launch, job, std::max<uint32_t>(1, here), most);
    }
  });
}

#define GNNBENCH_FUSED_OF(Id)                                                                \
  template int64_t fused_tile_rows<Id>(const PickSpec&, int64_t, uint32_t);                  \
  template void fused_begin<Id>(Launch, const FusedBatch<Id>&);                              \
  template void fused_hop<Id>(Launch, const FusedBatch<Id>&, const FusedHop&, uint32_t);     \
  template void fused_finish<Id>(Launch, const FusedBatch<Id>&, const FusedHop*, uint32_t,   \
                                 Notification);                                              \
  template void fused_id_map<Id>(Launch, Vertices, int64_t, const FusedNames<Id>*, uint32_t, \
                                 FusedTable, FusedControl*, FusedClear, Id*, int64_t,        \
                                 const int64_t*, Notification)
GNNBENCH_FUSED_OF(int32_t);
GNNBENCH_FUSED_OF(int64_t);
#undef GNNBENCH_FUSED_OF

}  // namespace gnnbench::cuda
