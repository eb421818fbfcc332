// Host-only test of the gather: every supported kind of store gives the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/features/gather.h"
#include "expect.h"
#include "workers.h"

using gnnbench::gather_rows;
using gnnbench::gather_rows_over;
using gnnbench::Kept;
using gnnbench::Stores;

namespace {

constexpr int64_t kRows = 1000;
constexpr char kGuard = 0x5A;

void fill(std::vector<char>& bytes, std::mt19937& random) {
  for (size_t i = 0; i < bytes.size(); i += 4) {
    const uint32_t drawn = static_cast<uint32_t>(random());
    std::memcpy(&bytes[i], &drawn, std::min<size_t>(4, bytes.size() - i));
  }
}

// Gathers to `offset` bytes behind a line boundary. Returns whether the rows are right and the
// bytes around them unchanged.
template <class Id>
bool gathers(Stores stores, int64_t bytes, int64_t n, int64_t offset, std::mt19937& random) {
  std::vector<char> table(kRows * bytes);
  fill(table, random);
  std::vector<Id> ids(n);
  for (Id& id : ids) id = static_cast<Id>(random() % kRows);
  std::vector<char> memory(n * bytes + 256, kGuard);
  char* begin = memory.data();
  while (reinterpret_cast<uintptr_t>(begin) % gnnbench::kLine != 0) ++begin;
  char* const out = begin + offset;
  std::vector<char> expected(memory);
  char* const to = expected.data() + (out - memory.data());
  for (int64_t i = 0; i < n; ++i) {
    if (bytes > 0) std::memcpy(to + i * bytes, &table[ids[i] * bytes], bytes);
  }
  const int64_t wrong = gather_rows(table.data(), kRows, bytes, ids.data(), n, out, stores);
  return wrong == -1 && memory == expected;
}

// Half of the rows are cached, with different bytes. Returns whether rows, hits and the next
// generation are right.
template <class Id>
bool gathers_cached(Stores stores, int64_t bytes, int64_t n, std::mt19937& random) {
  std::vector<char> table(kRows * bytes), kept(kRows / 2 * bytes);
  fill(table, random);
  fill(kept, random);
  std::vector<int32_t> slots(kRows), generations(kRows);
  std::vector<Id> ids(kRows);
  for (int64_t r = 0; r < kRows; ++r) {
    ids[r] = static_cast<Id>(r);
    slots[r] = static_cast<int32_t>(r / 2);
    generations[r] = r % 2 == 0 ? 5 : 4;
  }
  std::shuffle(ids.begin(), ids.end(), random);
  std::vector<char> out(n * bytes), expected(n * bytes);
  int64_t known = 0, hits = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool cached = ids[i] % 2 == 0;
    known += cached;
    const char* row = cached ? &kept[ids[i] / 2 * bytes] : &table[ids[i] * bytes];
    if (bytes > 0) std::memcpy(&expected[i * bytes], row, bytes);
  }
  const Kept before{kept.data(), kRows / 2, slots.data(), generations.data(), 5, true};
  bool ok = gather_rows_over(table.data(), kRows, bytes, before, ids.data(), n, out.data(), &hits,
                             stores) == -1;
  ok &= out == expected && hits == known;
  for (int64_t i = 0; i < kRows; ++i) {
    const auto id = static_cast<int64_t>(ids[i]);
    const int32_t slot = i < n ? static_cast<int32_t>(i) : static_cast<int32_t>(id / 2);
    ok &= slots[id] == slot && generations[id] == (i < n ? 6 : id % 2 == 0 ? 5 : 4);
  }
  return ok;
}

// Returns whether the gather reports the first of several invalid ids, in chunks of several
// threads.
template <class Id>
bool reports_the_first(Stores stores, int64_t bytes, int64_t n) {
  const std::vector<char> table(kRows * bytes);
  std::vector<char> out(n * bytes);
  bool ok = true;
  for (const int64_t first : {int64_t{0}, n / 3, n - 3}) {
    std::vector<Id> ids(n, 7);
    ids[first] = static_cast<Id>(-1);
    ids[first + 1] = static_cast<Id>(kRows);
    ids[n - 1] = static_cast<Id>(kRows);
    ok &= gather_rows(table.data(), kRows, bytes, ids.data(), n, out.data(), stores) == first;
  }
  return ok;
}

void all(Stores stores, const std::string& name) {
  std::mt19937 random(1);
  bool widths = true, places = true, kept = true;
  for (const int64_t bytes :
       {0, 1, 2, 4, 7, 60, 64, 68, 100, 128, 192, 400, 512, 2408, 4096, 5000}) {
    for (const int64_t n : {0, 1, 2, 65, 700}) {
      widths &= gathers<int32_t>(stores, bytes, n, 0, random);
      widths &= gathers<int64_t>(stores, bytes, n, 4, random);
      kept &= bytes == 0 || gathers_cached<int32_t>(stores, bytes, n, random);
      kept &= bytes == 0 || gathers_cached<int64_t>(stores, bytes, n, random);
    }
  }
  for (int64_t offset = 0; offset < gnnbench::kLine; ++offset) {
    places &= gathers<int64_t>(stores, 3, 5, offset, random);
    places &= gathers<int32_t>(stores, 512, 3000, offset, random);
    places &= gathers<int64_t>(stores, 400, 3000, offset, random);
  }
  expect(widths, (name + ": rows of any width").c_str());
  expect(kept, (name + ": cached rows of any width").c_str());
  expect(places, (name + ": results at any address, with no other bytes changed").c_str());
  const bool reported = reports_the_first<int32_t>(stores, 512, 5000) &&
                        reports_the_first<int64_t>(stores, 100, 50000);
  expect(reported, (name + ": the first invalid id is reported").c_str());
}

}  // namespace

int main() {
  all(Stores::kCached, "cached");
  if (gnnbench::can_store(Stores::kAvx2)) all(Stores::kAvx2, "avx2");
  if (gnnbench::can_store(Stores::kAvx512)) all(Stores::kAvx512, "avx512");
  const Stores large = gnnbench::best_stores(1 << 20, 512);
  expect(gnnbench::can_store(large), "the best stores are supported");
  expect(gnnbench::best_stores(1000, 512) == Stores::kCached, "small results stay in the caches");
  expect(gnnbench::best_stores(1 << 20, 100) == Stores::kCached, "narrow rows stay in the caches");
  expect(gnnbench::best_stores(1 << 20, 400) == large, "wide rows use non-temporal stores");
  return failed();
}
