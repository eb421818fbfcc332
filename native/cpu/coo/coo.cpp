#include "cpu/coo/coo.h"

#include <algorithm>
#include <utility>

#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kWorkerEdges = 4096;  // smallest number of edges for another worker

}  // namespace

int64_t coo_workers(int64_t edges) {
  return std::clamp<int64_t>(num_chunks(edges, kWorkerEdges), 1, num_threads());
}

void coo_to_csc(const CooEdges& coo, int64_t rows, int32_t* counts, int32_t* indptr,
                int32_t* indices, int64_t* positions) {
  const int64_t workers = coo_workers(coo.n);
  const auto each_worker = [&](const auto& body) {  // calls body(counts of worker, begin, end)
    parallel_chunks(workers, 1, [&](int64_t w, int64_t, int64_t) {
      body(counts + w * rows, coo.n * w / workers, coo.n * (w + 1) / workers);
    });
  };
  each_worker([&](int32_t* mine, int64_t begin, int64_t end) {
    std::fill_n(mine, rows, 0);
    for (int64_t e = begin; e < end; ++e) ++mine[coo.targets[e]];
  });
  parallel_chunks(rows, kWorkerEdges, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int32_t before = 0;  // edges of the row that earlier workers have
      for (int64_t w = 0; w < workers; ++w) {
        before += std::exchange(counts[w * rows + r], before);
      }
      indptr[r] = before;
    }
  });
  int32_t total = 0;
  for (int64_t r = 0; r < rows; ++r) total += std::exchange(indptr[r], total);
  indptr[rows] = total;
  each_worker([&](int32_t* mine, int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const int32_t place = indptr[coo.targets[e]] + mine[coo.targets[e]]++;
      indices[place] = coo.sources[e];
      if (positions) positions[place] = coo.positions[e];
    }
  });
}

}  // namespace gnnbench
