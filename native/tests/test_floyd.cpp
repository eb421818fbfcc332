// Host-only test of Floyd's picks of many rows: every supported width equals pick_floyd.
#include <random>
#include <string>
#include <vector>

#include "cpu/pick/floyd.h"
#include "expect.h"

using gnnbench::FloydBy;
using gnnbench::kFloydRows;

namespace {

// Compares the draws of `groups` groups of rows. Degrees start just above the fanout, where most
// draws repeat.
bool equals_pick_floyd(FloydBy by, uint32_t fanout, int64_t groups, std::mt19937& random) {
  gnnbench::HopDraws draws{};
  draws.key = uint64_t{random()} << 32 | random();
  draws.batch = static_cast<uint32_t>(random());
  draws.hop = static_cast<uint32_t>(random() % 8);
  draws.fanout = fanout;
  const int64_t n = groups * kFloydRows;
  std::vector<uint32_t> low(n), high(n), degree(n), out(n * fanout);
  for (int64_t r = 0; r < n; ++r) {
    low[r] = static_cast<uint32_t>(random());
    high[r] = static_cast<uint32_t>(random() % 0x10000);
    degree[r] = fanout + 1 + static_cast<uint32_t>(r % 3 == 0 ? r / 3 : random() % 0x7FFF0000);
  }
  gnnbench::floyd_rows(draws, n, low.data(), high.data(), degree.data(), out.data(), by);
  bool ok = true;
  std::vector<uint32_t> expected(fanout);
  for (int64_t r = 0; r < n; ++r) {
    const auto own = draws.of(static_cast<int64_t>(uint64_t{high[r]} << 32 | low[r]));
    const auto draw = [&own](uint32_t s) {
      const gnnbench::Philox4 b = own.block(s / 4);
      return s % 4 == 0 ? b.x : s % 4 == 1 ? b.y : s % 4 == 2 ? b.z : b.w;
    };
    gnnbench::pick_floyd(degree[r], fanout, draw, expected.data());
    const uint32_t* const group = out.data() + r / kFloydRows * kFloydRows * fanout;
    for (uint32_t s = 0; s < fanout; ++s) {
      ok &= group[kFloydRows * s + r % kFloydRows] == expected[s];
    }
  }
  return ok;
}

void all(FloydBy by, const std::string& name) {
  std::mt19937 random(1);
  bool ok = true;
  for (uint32_t fanout = 1; fanout <= 33; ++fanout) {
    if (gnnbench::can_draw(by, fanout)) ok &= equals_pick_floyd(by, fanout, 40, random);
  }
  for (const uint32_t fanout : {64u, 127u, 512u, 513u}) {
    if (gnnbench::can_draw(by, fanout)) ok &= equals_pick_floyd(by, fanout, 3, random);
  }
  expect(ok, (name + ": picks equal those of single rows").c_str());
}

}  // namespace

int main() {
  all(FloydBy::kScalar, "scalar");
  all(FloydBy::kAvx2, "AVX2");
  all(FloydBy::kAvx512, "AVX-512");
  const FloydBy widest = gnnbench::widest_floyd(5);
  expect(gnnbench::can_draw(widest, 5), "the widest method is supported");
  expect(gnnbench::can_draw(gnnbench::widest_floyd(1 << 20), 1 << 20),
         "a method for a large fanout is supported");
  return failed();
}
