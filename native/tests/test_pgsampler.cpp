// Host-only test of PGSampler on threads without memory: whichever allocation fails, all workers
// end and the caller gets an error.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "cpu/pgsampler/pgsampler.h"
#include "expect.h"
#include "workers.h"

namespace {

std::atomic<int64_t> allocations_left{-1};  // until one fails; negative: none fails
std::atomic<bool> failed_once{false};

void* allocate(size_t bytes, size_t alignment) {
  if (allocations_left.load() >= 0 && allocations_left.fetch_sub(1) == 0) {
    failed_once.store(true);
    throw std::bad_alloc();
  }
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes, 16); }
void* operator new(size_t bytes, std::align_val_t to) {
  return allocate(bytes, static_cast<size_t>(to));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

int main() {
  using gnnbench::TaskSampler;
  // A ring: the neighbours of each node are the next 8.
  constexpr int64_t kNodes = 3000, kDegree = 8;
  std::vector<int64_t> indptr(kNodes + 1);
  std::vector<int32_t> indices(kNodes * kDegree), seeds(32);
  for (int64_t v = 0; v <= kNodes; ++v) indptr[v] = v * kDegree;
  for (int64_t e = 0; e < kNodes * kDegree; ++e) {
    indices[e] = static_cast<int32_t>((e / kDegree + 1 + e % kDegree) % kNodes);
  }
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i] = static_cast<int32_t>(90 * i);
  const gnnbench::Csc<int32_t> graph{indptr.data(), indices.data(), kNodes, kNodes * kDegree};
  const gnnbench::HopDraws draws{
      {gnnbench::Pick::kFloyd, {nullptr, nullptr, nullptr}, {0, 0, 0}}, 0, 1, 0, 0};
  const std::vector<int64_t> fanouts{5, 5, 5};

  const auto batch = [&](int64_t fails_at) {
    TaskSampler<int32_t> sampler(graph, draws, fanouts, true);
    allocations_left.store(fails_at);
    gnnbench::FaultAt result;
    try {
      result = sampler.run(seeds.data(), static_cast<int64_t>(seeds.size()), 5, false, 3);
    } catch (...) {
      allocations_left.store(-1);
      throw;
    }
    allocations_left.store(-1);
    expect(result.fault == gnnbench::Fault::kNone, "a valid batch has no fault");
    return sampler.counts().processed;
  };

  const int64_t tasks = batch(-1);
  expect(tasks > 500, "many tasks are processed");
  int thrown = 0;
  for (const int64_t fails_at : {0, 1, 2, 5, 9, 14, 20, 30, 45, 70}) {
    failed_once.store(false);
    try {
      expect(batch(fails_at) == tasks && !failed_once.load(),
             "a batch without a failure is complete");
    } catch (const std::bad_alloc&) {
      ++thrown;
      expect(failed_once.load(), "an error follows only a failure");
    }
  }
  expect(thrown >= 5, "failed allocations raise errors in the caller");
  expect(batch(-1) == tasks, "the next batch is complete");
  return failed();
}
