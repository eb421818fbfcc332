// Operators of the synthetic twins on the GPU. The small parameter tensors are copied from there
// and validated on the host.
//
// Memory of a graph beyond its CSC: two arrays of 8 bytes per stored edge (the keys and the sort's
// second buffer, which first holds the rows' hash tables) and about 70 bytes per node.
#include "cuda/twin/twin.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "bindings/cuda/common.h"
#include "bindings/twin_spec.h"
#include "cuda/common/scan.h"

namespace gnnbench::cuda {
namespace {

constexpr int kPasses = 4;

// Host synchronisation: copies `n` values from the device and waits for the stream.
template <class T>
void read_back(const OnDevice& on, const T* from, T* to, int64_t n) {
  const Launch& launch = on.launch();
  GNNBENCH_CUDA_CALL(
      launch, cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToHost, launch.stream));
  GNNBENCH_CUDA_CALL(launch, cudaStreamSynchronize(launch.stream));
}

std::vector<int64_t> to_host(const OnDevice& on, const Tensor& t, const char* name) {
  check_layout(t, name, 1);
  check_dtype(t, name, ScalarType::Long);
  check_cuda({{t, name}});
  std::vector<int64_t> values(static_cast<size_t>(t.numel()));
  if (!values.empty()) read_back(on, data<const int64_t>(t), values.data(), t.numel());
  return values;
}

HostInts ints(const std::vector<int64_t>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

template <class T>
T read_one(const OnDevice& on, const T* from) {
  T value;
  read_back(on, from, &value, 1);
  return value;
}

template <class T>
void fill_bytes(const OnDevice& on, T* at, int byte, int64_t n) {
  if (n == 0) return;
  GNNBENCH_CUDA_CALL(on.launch(), cudaMemsetAsync(at, byte, static_cast<size_t>(n) * sizeof(T),
                                                  on.launch().stream));
}

void scan(const OnDevice& on, int64_t* values, int64_t n) {
  const size_t bytes = scan_scratch_bytes<int64_t>(on.launch(), n);
  const Tensor scratch =
      on.empty({std::max<int64_t>(1, static_cast<int64_t>(bytes))}, ScalarType::Byte);
  exclusive_scan(on.launch(), data<char>(scratch), bytes, values, n);
}

// Sums modulo 2^64 are equal for signed and unsigned integers.
void scan(const OnDevice& on, uint64_t* values, int64_t n) {
  scan(on, reinterpret_cast<int64_t*>(values), n);
}

uint64_t* sort(const OnDevice& on, uint64_t* keys, uint64_t* other, int64_t n, int bits) {
  if (n == 0) return keys;
  const size_t bytes = sort_keys_scratch_bytes(on.launch(), n, bits);
  const Tensor scratch =
      on.empty({std::max<int64_t>(1, static_cast<int64_t>(bytes))}, ScalarType::Byte);
  return sort_keys(on.launch(), data<char>(scratch), bytes, keys, other, n, bits);
}

// ---- graph ----

// One pass over a level. Returns how many of `left` edges were distributed.
uint64_t give(const OnDevice& on, const TwinRows& rows, int level, uint64_t left, bool by_room,
              uint64_t* shares, uint64_t* given) {
  twin_shares(on.launch(), rows, level, by_room, shares);
  scan(on, shares, rows.n + 1);
  const uint64_t total = read_one(on, shares + rows.n);
  if (total == 0) return 0;
  fill_bytes(on, given, 0, 1);
  twin_give(on.launch(), rows, level, by_room, left, total, shares, given);
  return read_one(on, given);
}

// Runs the passes of the CPU's plan in the same order.
void plan(const OnDevice& on, const TwinRows& rows, const int64_t* level_edges, uint64_t* shares,
          uint64_t* given) {
  uint64_t left = 0;
  for (int level = 0; level < twin::kLevels; ++level) {
    left += static_cast<uint64_t>(level_edges[level]);
    for (int pass = 0; pass < kPasses && left > 0; ++pass) {
      left -= give(on, rows, level, left, false, shares, given);
    }
  }
  for (int level = 0; level < twin::kLevels && left > 0; ++level) {
    left -= give(on, rows, level, left, true, shares, given);
  }
}

std::tuple<Tensor, Tensor> twin_graph_cuda(int64_t key, int64_t num_nodes, int64_t num_edges,
                                           bool symmetric, Tensor community_ptr, Tensor region_ptr,
                                           Tensor in_law, Tensor out_law, int64_t in_positive,
                                           int64_t out_positive, int64_t tied, int64_t in_limit,
                                           int64_t out_limit, int64_t boost, Tensor level_edges,
                                           bool wide_ids) {
  check_cuda({{community_ptr, "community_ptr"},
              {region_ptr, "region_ptr"},
              {in_law, "in_law"},
              {out_law, "out_law"},
              {level_edges, "level_edges"}});
  const OnDevice on(community_ptr, "twin_graph");
  const auto communities = to_host(on, community_ptr, "community_ptr");
  const auto regions = to_host(on, region_ptr, "region_ptr");
  const auto in_points = to_host(on, in_law, "in_law");
  const auto out_points = to_host(on, out_law, "out_law");
  const auto levels = to_host(on, level_edges, "level_edges");
  const twin::GraphSpec spec = graph_spec(
      key, num_nodes, num_edges, symmetric, ints(communities), ints(regions), ints(in_points),
      ints(out_points), in_positive, out_positive, tied, in_limit, out_limit, boost, ints(levels));
  const int64_t n = num_nodes;

  Tensor indptr = on.empty({n + 1}, ScalarType::Long);
  Tensor indices = on.empty({num_edges}, wide_ids ? ScalarType::Long : ScalarType::Int);
  const Tensor keys_memory = on.empty({2, num_edges}, ScalarType::Long);
  uint64_t* keys = data<uint64_t>(keys_memory);
  uint64_t* other = keys + num_edges;

  Scratch memory;
  const size_t community_of = memory.add<uint32_t>(n);
  const size_t in_weight = memory.add<uint32_t>(symmetric ? 0 : n);
  const size_t id_of = memory.add<uint32_t>(n);
  const size_t prefix_outside = memory.add<uint64_t>(n + 1);
  const size_t prefix_inside = memory.add<uint64_t>(n + 1);
  size_t wanted[twin::kLevels];
  for (size_t& at : wanted) at = memory.add<uint32_t>(n);
  const size_t sums = memory.add<uint64_t>(n + 1);  // shares, then the start of each row
  const size_t given = memory.add<uint64_t>(1);
  memory.allocate(on);

  const twin::Weights weights{spec.key,
                              twin::Bijection(spec.key, twin::kStreamInRank, spec.num_nodes),
                              twin::Bijection(spec.key, twin::kStreamOutRank, spec.num_nodes),
                              twin::Law{data<const int64_t>(in_law), spec.in_positive},
                              twin::Law{data<const int64_t>(out_law), spec.out_positive},
                              spec.tied};
  TwinRows rows{n,
                symmetric,
                data<const int64_t>(community_ptr),
                spec.communities,
                data<const int64_t>(region_ptr),
                spec.regions,
                weights,
                spec.in_limit,
                spec.out_limit,
                spec.boost,
                memory.at<uint32_t>(community_of),
                memory.at<uint32_t>(in_weight),
                memory.at<uint32_t>(id_of),
                {memory.at<uint64_t>(prefix_outside), memory.at<uint64_t>(prefix_inside)},
                {memory.at<uint32_t>(wanted[0]), memory.at<uint32_t>(wanted[1]),
                 memory.at<uint32_t>(wanted[2])}};
  const Launch& launch = on.launch();
  twin_positions(launch, rows);
  for (uint64_t* sums_of_weights : rows.prefix) scan(on, sums_of_weights, n + 1);
  plan(on, rows, levels.data(), memory.at<uint64_t>(sums), memory.at<uint64_t>(given));
  int64_t* start = memory.at<int64_t>(sums);
  twin_row_sizes(launch, rows, start);
  scan(on, start, n + 1);
  const int64_t drawn = read_one(on, start + n);
  check_made(symmetric ? 2 * drawn : drawn, num_edges);

  int id_bits = 1;
  while ((int64_t{1} << id_bits) < n) ++id_bits;
  auto* slots = reinterpret_cast<uint32_t*>(other);
  fill_bytes(on, slots, 0xFF, 2 * drawn);
  twin_draw(launch, rows, start, slots, id_bits, keys);
  const uint64_t* sorted = sort(on, keys, other, num_edges, 2 * id_bits);
  if (wide_ids) {
    twin_csc(launch, sorted, num_edges, n, id_bits, data<int64_t>(indptr), data<int64_t>(indices));
  } else {
    twin_csc(launch, sorted, num_edges, n, id_bits, data<int64_t>(indptr), data<int32_t>(indices));
  }
  return {indptr, indices};
}

// ---- labels, splits, features ----

// Validates on the host; returns a device pointer.
TwinNodes check_nodes_of(const OnDevice& on, int64_t key, int64_t num_nodes,
                         const Tensor& community_ptr, int64_t num_classes) {
  const auto communities = to_host(on, community_ptr, "community_ptr");
  const twin::NodeSpec spec = node_spec(key, num_nodes, ints(communities), num_classes);
  return {spec.key, spec.num_nodes, data<const int64_t>(community_ptr), spec.communities};
}

Tensor twin_labels_cuda(int64_t key, int64_t num_nodes, Tensor community_ptr, int64_t num_classes,
                        int64_t noise) {
  check_cuda({{community_ptr, "community_ptr"}});
  const OnDevice on(community_ptr, "twin_labels");
  const TwinNodes nodes = check_nodes_of(on, key, num_nodes, community_ptr, num_classes);
  const uint32_t share = check_share(noise, "noise");
  Tensor out = on.empty({num_nodes}, ScalarType::Long);
  twin_labels(on.launch(), nodes, static_cast<uint32_t>(num_classes), share, data<int64_t>(out));
  return out;
}

std::tuple<Tensor, Tensor, Tensor> twin_splits_cuda(int64_t key, int64_t num_nodes,
                                                    Tensor community_ptr, int64_t home,
                                                    int64_t locality, int64_t degree_bias,
                                                    int64_t train, int64_t val, int64_t test) {
  check_cuda({{community_ptr, "community_ptr"}});
  const OnDevice on(community_ptr, "twin_splits");
  const TwinNodes nodes = check_nodes_of(on, key, num_nodes, community_ptr, 1);
  const int64_t sizes[3] = {train, val, test};
  check_splits(num_nodes, sizes);
  const uint32_t locality_share = check_share(locality, "locality");
  const uint32_t degree_share = check_share(degree_bias, "degree_bias");
  const int64_t n = num_nodes;
  Scratch memory;
  const size_t scores_at = memory.add<uint64_t>(n);
  const size_t order_at = memory.add<uint64_t>(2 * n);
  const size_t places_at = memory.add<int64_t>(n + 1);
  memory.allocate(on);
  auto* scores = memory.at<uint64_t>(scores_at);
  auto* order = memory.at<uint64_t>(order_at);
  auto* places = memory.at<int64_t>(places_at);
  twin_scores(on.launch(), nodes, home, locality_share, degree_share, scores);
  GNNBENCH_CUDA_CALL(on.launch(), cudaMemcpyAsync(order, scores, n * sizeof(uint64_t),
                                                  cudaMemcpyDeviceToDevice, on.launch().stream));
  const uint64_t* sorted = sort(on, order, order + n, n, 64);
  std::vector<Tensor> out;
  int64_t taken = 0;
  uint64_t low = 0;
  for (const int64_t size : sizes) {
    taken += size;
    const uint64_t high = taken < n ? read_one(on, sorted + taken) : ~uint64_t{0};
    out.push_back(on.empty({size}, ScalarType::Long));
    twin_split_mark(on.launch(), scores, n, low, high, places);
    scan(on, places, n + 1);
    if (size > 0) twin_split_fill(on.launch(), places, n, data<int64_t>(out.back()));
    low = high;
  }
  return {out[0], out[1], out[2]};
}

void twin_features_cuda(int64_t key, int64_t num_nodes, Tensor community_ptr, int64_t num_classes,
                        int64_t signal, int64_t first, Tensor out) {
  check_cuda({{community_ptr, "community_ptr"}, {out, "out"}});
  const OnDevice on(community_ptr, "twin_features");
  const TwinNodes nodes = check_nodes_of(on, key, num_nodes, community_ptr, num_classes);
  check_features(out, num_nodes, first, signal);
  twin_features(on.launch(), nodes, static_cast<uint32_t>(num_classes),
                static_cast<int32_t>(signal), first, out.size(0), out.size(1), data<float>(out));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("twin_graph", TORCH_BOX(&twin_graph_cuda));
  m.impl("twin_labels", TORCH_BOX(&twin_labels_cuda));
  m.impl("twin_splits", TORCH_BOX(&twin_splits_cuda));
  m.impl("twin_features", TORCH_BOX(&twin_features_cuda));
}

}  // namespace gnnbench::cuda
