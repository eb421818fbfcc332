#include "cpu/features/id_set.h"

#include <atomic>

#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kChunk = 1 << 14;  // ids or words

// Sets the bit and returns whether it was already set. Most often it is; then nothing is written.
bool set_bit(uint32_t* word, uint32_t bit) {
  const std::atomic_ref<uint32_t> shared(*word);
  if (shared.load(std::memory_order_relaxed) & bit) return true;
  return shared.fetch_or(bit, std::memory_order_relaxed) & bit;
}

}  // namespace

template <class Id>
int64_t mark_ids(const Id* ids, int64_t n, int64_t num_nodes, uint32_t* seen, uint32_t* again) {
  std::atomic<int64_t> bad{INT64_MAX};
  parallel_chunks(n, kChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = static_cast<int64_t>(ids[i]);
      if (id < 0 || id >= num_nodes) {
        int64_t first = bad.load(std::memory_order_relaxed);
        while (i < first && !bad.compare_exchange_weak(first, i)) {
        }
        continue;
      }
      const int64_t word = id / kIdsPerWord;
      if (set_bit(seen + word, id_bit(id)) && again != nullptr) set_bit(again + word, id_bit(id));
    }
  });
  return bad.load() == INT64_MAX ? -1 : bad.load();
}

int64_t count_ids(const uint32_t* bits, int64_t num_words, IdWord* words) {
  int64_t before = 0;
  for (int64_t w = 0; w < num_words; ++w) {
    words[w] = {bits[w], static_cast<uint32_t>(before)};
    before += ids_in(bits[w]);
  }
  return before;
}

template <class Id>
void list_ids(const IdWord* words, int64_t num_words, Id* ids) {
  parallel_chunks(num_words, kChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      Id* to = ids + words[w].before;
      for (uint32_t left = words[w].bits; left != 0; left &= left - 1) {
        *to++ = static_cast<Id>(w * kIdsPerWord + std::countr_zero(left));
      }
    }
  });
}

template <class Id>
void places_of(const IdWord* words, int64_t num_words, const Id* ids, int64_t n, int64_t* places) {
  parallel_chunks(n, kChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      places[i] = place_of(words, num_words, static_cast<int64_t>(ids[i]));
    }
  });
}

template <class Id>
void fill_ones(const IdWord* words, int64_t num_words, const Id* ids, int64_t n, int64_t batch,
               const Ones& ones) {
  parallel_chunks(n, kChunk, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = place_of(words, num_words, static_cast<int64_t>(ids[i]));
      const int64_t at = ones.offset(batch, place);
      // Two threads can meet the same id if it occurs twice. Both write the same value.
      if (at >= 0) std::atomic_ref<uint16_t>(ones.at[at]).store(kOne, std::memory_order_relaxed);
    }
  });
}

template int64_t mark_ids(const int32_t*, int64_t, int64_t, uint32_t*, uint32_t*);
template int64_t mark_ids(const int64_t*, int64_t, int64_t, uint32_t*, uint32_t*);
template void list_ids(const IdWord*, int64_t, int32_t*);
template void list_ids(const IdWord*, int64_t, int64_t*);
template void places_of(const IdWord*, int64_t, const int32_t*, int64_t, int64_t*);
template void places_of(const IdWord*, int64_t, const int64_t*, int64_t, int64_t*);
template void fill_ones(const IdWord*, int64_t, const int32_t*, int64_t, int64_t, const Ones&);
template void fill_ones(const IdWord*, int64_t, const int64_t*, int64_t, int64_t, const Ones&);

}  // namespace gnnbench
