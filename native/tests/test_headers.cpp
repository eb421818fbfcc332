// Host-only test of the decisions that host and device share. The same constants are asserted of
// the operators and of the reference in tests/ops, and on the device in tests/gpu.
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <vector>

#include "gnnbench/pick.h"
#include "gnnbench/rng.h"

namespace {

int failures = 0;

void expect(bool ok, const char* what) {
  std::printf("%s %s\n", ok ? "ok  " : "FAIL", what);
  failures += !ok;
}

bool equal(const gnnbench::Philox4& a, const gnnbench::Philox4& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

// Known answers of Random123.
void philox_known_answers() {
  using gnnbench::philox4x32;
  expect(equal(philox4x32(0, {0, 0, 0, 0}), {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}),
         "philox of zeros");
  expect(equal(philox4x32(~uint64_t{0}, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}),
               {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}),
         "philox of ones");
  expect(equal(philox4x32(0x299F31D0A4093822, {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}),
               {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}),
         "philox of pi");
}

constexpr uint64_t kKey = 0x0123456789ABCDEF;

void draws_of_a_vertex() {
  const gnnbench::Draws small{kKey, 7, 1, 3}, large{kKey, 5000000007, 1, 3};
  const uint32_t of_small[] = {0xE3E33F98, 0xC4840E25, 0x80602A0E, 0xBDB0A323,
                               0xBB301E32, 0x85898C19, 0xCE330C42, 0xAE35DB89};
  const uint32_t of_large[] = {0x11E6A367, 0x505B0424, 0x870212CB, 0x7BF5BCC6,
                               0x9F0EF030, 0xAD239C92, 0xA9B9576B, 0x1B943B40};
  for (uint32_t i = 0; i < 8; ++i) {
    expect(small(i) == of_small[i], "draw of vertex 7");
    expect(large(i) == of_large[i], "draw of vertex 5000000007");
  }
}

void bounded_draws() {
  expect(gnnbench::bounded(0, 10) == 0, "bounded of the smallest draw");
  expect(gnnbench::bounded(0xFFFFFFFF, 10) == 9, "bounded of the largest draw");
  expect(gnnbench::bounded(0x80000000, 10) == 5, "bounded of the middle draw");
  expect(gnnbench::bounded(0xFFFFFFFF, 1) == 0, "bounded by one");
}

void pick(gnnbench::Pick which, uint64_t vertex, uint32_t degree, uint32_t fanout,
          std::initializer_list<int> expected, const char* what) {
  std::vector<int> out(fanout);
  const gnnbench::Draws draws{kKey, vertex, 1, 3};
  if (which == gnnbench::Pick::kReservoir) {
    gnnbench::pick_reservoir(degree, fanout, draws, out.data());
  } else {
    gnnbench::pick_floyd(degree, fanout, draws, out.data());
  }
  expect(out == std::vector<int>(expected), what);
}

void picks() {
  using gnnbench::Pick;
  const uint64_t large = 5000000007;
  pick(Pick::kReservoir, 7, 12, 5, {0, 1, 2, 3, 7}, "reservoir 5 of 12");
  pick(Pick::kReservoir, 7, 20, 9, {0, 1, 2, 3, 4, 19, 11, 14, 10}, "reservoir 9 of 20");
  pick(Pick::kReservoir, large, 12, 5, {5, 1, 6, 3, 8}, "reservoir 5 of 12, large vertex");
  pick(Pick::kFloyd, 7, 12, 5, {7, 6, 5, 8, 11}, "floyd 5 of 12, one repeated value");
  pick(Pick::kFloyd, 7, 20, 9, {10, 9, 7, 11, 15, 8, 14, 12, 19}, "floyd 9 of 20");
  pick(Pick::kFloyd, large, 12, 5, {0, 2, 5, 10, 7}, "floyd 5 of 12, large vertex");
  pick(Pick::kFloyd, large, 6, 5, {0, 2, 3, 4, 5}, "floyd 5 of 6");
}

}  // namespace

int main() {
  philox_known_answers();
  draws_of_a_vertex();
  bounded_draws();
  picks();
  if (failures) std::printf("%d failures\n", failures);
  return failures != 0;
}
