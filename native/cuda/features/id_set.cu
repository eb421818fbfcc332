#include "cuda/common/atomics.cuh"
#include "cuda/common/device_assert.h"
#include "cuda/features/id_set.h"
#include "cuda/features/rows.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 256;

// Sets the bit and returns whether it was already set. Bits are never cleared, so a bit that is
// read as set needs no atomic. If several threads set a bit, all but one see it as already set.
__device__ bool set_bit(uint32_t* word, uint32_t bit) {
  if (load_relaxed(word) & bit) return true;
  return DeviceAtomic<uint32_t>(*word).fetch_or(bit, ::cuda::memory_order_relaxed) & bit;
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    mark_kernel(const Id* __restrict__ ids, int64_t n, int64_t num_nodes, uint32_t* seen,
                uint32_t* again) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t id = static_cast<int64_t>(ids[i]);
  assert(id >= 0 && id < num_nodes && "gnnbench union_ids: an id is outside the graph");
  const int64_t word = id / kIdsPerWord;
  if (set_bit(seen + word, id_bit(id)) && again != nullptr) set_bit(again + word, id_bit(id));
}

__global__ void __launch_bounds__(kThreads)
    count_kernel(const uint32_t* __restrict__ bits, int64_t num_words,
                 int32_t* __restrict__ counts) {
  const int64_t w = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (w <= num_words) counts[w] = w < num_words ? ids_in(bits[w]) : 0;
}

// Neighbouring words write to neighbouring places: most words hold one or two ids.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const uint32_t* __restrict__ bits, const int32_t* __restrict__ before,
                  int64_t num_words, IdWord* __restrict__ words, Id* __restrict__ ids) {
  const int64_t w = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (w >= num_words) return;
  const IdWord word{bits[w], static_cast<uint32_t>(before[w])};
  words[w] = word;
  int64_t place = word.before;
  for (uint32_t left = word.bits; left != 0; left &= left - 1) {
    ids[place++] = static_cast<Id>(w * kIdsPerWord + __ffs(static_cast<int>(left)) - 1);
  }
}

// The lanes of a row all read one id and one word, which is cached, so no list of places is stored.
template <class Id, class Unit>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const Unit* __restrict__ rows, int64_t num_rows, const IdWord* __restrict__ words,
                  int64_t num_words, const Id* __restrict__ ids, int64_t n, RowShape<Unit> shape,
                  Unit* __restrict__ out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t i = thread >> shape.lanes_log2;
  if (i >= n) return;
  const int64_t place = place_of(words, num_words, static_cast<int64_t>(ids[i]));
  assert(place >= 0 && place < num_rows && "gnnbench gather_of_set: an id has no row in the set");
  shape.copy(rows, place, out, i, static_cast<int>(thread));
}

// An id that occurs twice writes the same value twice.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    ones_kernel(const IdWord* __restrict__ words, int64_t num_words, const Id* __restrict__ ids,
                int64_t n, int64_t batch, Ones ones) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t place = place_of(words, num_words, static_cast<int64_t>(ids[i]));
  const int64_t at = ones.offset(batch, place);
  if (at >= 0) ones.at[at] = kOne;
}

}  // namespace

template <class Id>
void mark_ids(Launch launch, const Id* ids, int64_t n, int64_t num_nodes, uint32_t* seen,
              uint32_t* again) {
  if (n == 0) return;
  mark_kernel<<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(ids, n, num_nodes, seen,
                                                                       again);
  GNNBENCH_CUDA_LAUNCHED(launch, "mark_kernel");
}

void count_ids(Launch launch, const uint32_t* bits, int64_t num_words, int32_t* counts) {
  count_kernel<<<blocks_for(num_words + 1, kThreads), kThreads, 0, launch.stream>>>(bits, num_words,
                                                                                    counts);
  GNNBENCH_CUDA_LAUNCHED(launch, "count_kernel");
}

template <class Id>
void finish_set(Launch launch, const uint32_t* bits, const int32_t* before, int64_t num_words,
                IdWord* words, Id* ids) {
  if (num_words == 0) return;
  finish_kernel<<<blocks_for(num_words, kThreads), kThreads, 0, launch.stream>>>(
      bits, before, num_words, words, ids);
  GNNBENCH_CUDA_LAUNCHED(launch, "finish_kernel");
}

template <class Id>
void gather_of_set(Launch launch, const void* rows, int64_t num_rows, const IdWord* words,
                   int64_t num_words, const Id* ids, int64_t n, int64_t row_bytes, void* out) {
  if (n == 0 || row_bytes == 0) return;
  with_unit(rows, out, row_bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const RowShape<Unit> shape(row_bytes, false);
    gather_kernel<Id, Unit>
        <<<blocks_for(n << shape.lanes_log2, kThreads), kThreads, 0, launch.stream>>>(
            static_cast<const Unit*>(rows), num_rows, words, num_words, ids, n, shape,
            static_cast<Unit*>(out));
    GNNBENCH_CUDA_LAUNCHED(launch, "gather_kernel");
  });
}

template <class Id>
void fill_ones(Launch launch, const IdWord* words, int64_t num_words, const Id* ids, int64_t n,
               int64_t batch, const Ones& ones) {
  if (n == 0) return;
  ones_kernel<<<blocks_for(n, kThreads), kThreads, 0, launch.stream>>>(words, num_words, ids, n,
                                                                       batch, ones);
  GNNBENCH_CUDA_LAUNCHED(launch, "ones_kernel");
}

#define GNNBENCH_INSTANTIATE(Id)                                                               \
  template void mark_ids(Launch, const Id*, int64_t, int64_t, uint32_t*, uint32_t*);           \
  template void finish_set(Launch, const uint32_t*, const int32_t*, int64_t, IdWord*, Id*);    \
  template void gather_of_set(Launch, const void*, int64_t, const IdWord*, int64_t, const Id*, \
                              int64_t, int64_t, void*);                                        \
  template void fill_ones(Launch, const IdWord*, int64_t, const Id*, int64_t, int64_t, const Ones&)

GNNBENCH_INSTANTIATE(int32_t);
GNNBENCH_INSTANTIATE(int64_t);
#undef GNNBENCH_INSTANTIATE

}  // namespace gnnbench::cuda
