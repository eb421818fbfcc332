// Labels, splits and features of a twin: one thread per node, or per Philox block of a row.
#include <cub/device/device_radix_sort.cuh>

#include "cuda/twin/find.cuh"
#include "cuda/twin/twin.h"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

__device__ int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

__global__ void labels_kernel(TwinNodes nodes, twin::Bijection ids, uint32_t classes,
                              uint32_t noise, int64_t* out) {
  const int64_t id = thread_index();
  if (id >= nodes.num_nodes) return;
  const uint32_t position = ids.inverse(static_cast<uint32_t>(id));
  const int64_t community = range_of(nodes.community_ptr, nodes.communities, position);
  out[id] = twin::node_label(nodes.key, position, static_cast<uint32_t>(community % classes),
                             classes, noise);
}

__global__ void scores_kernel(TwinNodes nodes, twin::Bijection ids, twin::Bijection ranks,
                              int64_t home, uint32_t locality, uint32_t degree_bias,
                              uint64_t* scores) {
  const int64_t id = thread_index();
  if (id >= nodes.num_nodes) return;
  const uint32_t position = ids.inverse(static_cast<uint32_t>(id));
  const auto rank = static_cast<uint32_t>((uint64_t{ranks(position)} << 16) / nodes.num_nodes);
  const bool at_home = range_of(nodes.community_ptr, nodes.communities, position) < home;
  scores[id] = twin::split_score(nodes.key, position, static_cast<uint32_t>(id), at_home, rank,
                                 locality, degree_bias);
}

__global__ void mark_kernel(const uint64_t* scores, int64_t n, uint64_t low, uint64_t high,
                            int64_t* places) {
  const int64_t id = thread_index();
  if (id > n) return;
  places[id] = id < n && scores[id] >= low && scores[id] < high;
}

__global__ void fill_kernel(const int64_t* places, int64_t n, int64_t* out) {
  const int64_t id = thread_index();
  if (id < n && places[id + 1] > places[id]) out[places[id]] = id;
}

// One thread per Philox block: 16 columns, whose signs are bits of one word of the class's stream.
__global__ void features_kernel(TwinNodes nodes, twin::Bijection ids, uint32_t classes,
                                int32_t signal, int64_t first, int64_t rows, int64_t dim,
                                int64_t blocks, float* out) {
  const int64_t thread = thread_index();
  const int64_t row = thread / blocks;
  if (row >= rows) return;
  const auto block = static_cast<uint32_t>(thread % blocks);
  const uint32_t position = ids.inverse(static_cast<uint32_t>(first + row));
  const int64_t community = range_of(nodes.community_ptr, nodes.communities, position);
  const uint32_t signs = twin::draws(nodes.key, twin::kStreamCentres,
                                     static_cast<uint64_t>(community % classes))(block / 2) >>
                         (16 * (block % 2));
  const Philox4 words = twin::draws(nodes.key, twin::kStreamFeatures, position).block(block);
  const uint32_t word[4] = {words.x, words.y, words.z, words.w};
  float* to = out + row * dim + 16 * block;
  const int64_t left = dim - 16 * static_cast<int64_t>(block);
  const int columns = left < 16 ? static_cast<int>(left) : 16;
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const auto byte = static_cast<int32_t>((word[j / 4] >> (8 * (j % 4))) & 0xFFu);
    const int32_t pattern = (signs >> j) & 1u ? signal : -signal;
    if (j < columns) to[j] = static_cast<float>(2 * byte - 255 + pattern) * (1.0f / 256.0f);
  }
}

cudaError_t sort(void* scratch, size_t& bytes, cub::DoubleBuffer<uint64_t>& keys, int64_t n,
                 int bits, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, n, 0, bits, stream);
}

}  // namespace

void twin_labels(Launch launch, TwinNodes nodes, uint32_t classes, uint32_t noise, int64_t* out) {
  const twin::Bijection ids(nodes.key, twin::kStreamIds, nodes.num_nodes);
  labels_kernel<<<blocks_for(nodes.num_nodes, kThreads), kThreads, 0, launch.stream>>>(
      nodes, ids, classes, noise, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "labels_kernel");
}

void twin_scores(Launch launch, TwinNodes nodes, int64_t home, uint32_t locality,
                 uint32_t degree_bias, uint64_t* scores) {
  const twin::Bijection ids(nodes.key, twin::kStreamIds, nodes.num_nodes);
  const twin::Bijection ranks(nodes.key, twin::kStreamInRank, nodes.num_nodes);
  scores_kernel<<<blocks_for(nodes.num_nodes, kThreads), kThreads, 0, launch.stream>>>(
      nodes, ids, ranks, home, locality, degree_bias, scores);
  GNNBENCH_CUDA_LAUNCHED(launch, "scores_kernel");
}

void twin_split_mark(Launch launch, const uint64_t* scores, int64_t n, uint64_t low, uint64_t high,
                     int64_t* places) {
  mark_kernel<<<blocks_for(n + 1, kThreads), kThreads, 0, launch.stream>>>(scores, n, low, high,
                                                                           places);
  GNNBENCH_CUDA_LAUNCHED(launch, "mark_kernel");
}

void twin_split_fill(Launch launch, const int64_t* places, int64_t n, int64_t* out) {
  fill_kernel<<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(places, n, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "fill_kernel");
}

void twin_features(Launch launch, TwinNodes nodes, uint32_t classes, int32_t signal, int64_t first,
                   int64_t rows, int64_t dim, float* out) {
  if (rows == 0) return;
  const twin::Bijection ids(nodes.key, twin::kStreamIds, nodes.num_nodes);
  const int64_t blocks = (dim + 15) / 16;
  features_kernel<<<blocks_for(rows * blocks, kThreads), kThreads, 0, launch.stream>>>(
      nodes, ids, classes, signal, first, rows, dim, blocks, out);
  GNNBENCH_CUDA_LAUNCHED(launch, "features_kernel");
}

size_t sort_keys_scratch_bytes(Launch launch, int64_t n, int bits) {
  size_t bytes = 0;
  cub::DoubleBuffer<uint64_t> none(nullptr, nullptr);
  GNNBENCH_CUDA_CALL(launch, sort(nullptr, bytes, none, n, bits, launch.stream));
  return bytes;
}

uint64_t* sort_keys(Launch launch, void* scratch, size_t scratch_bytes, uint64_t* keys,
                    uint64_t* other, int64_t n, int bits) {
  cub::DoubleBuffer<uint64_t> both(keys, other);
  GNNBENCH_CUDA_CALL(launch, sort(scratch, scratch_bytes, both, n, bits, launch.stream));
  return both.Current();
}

}  // namespace gnnbench::cuda
