// Host-only test of the measured peaks: every supported register width does the same work.
#include <string>
#include <vector>

#include "cpu/ceilings/ceilings.h"
#include "expect.h"
#include "workers.h"

using namespace gnnbench;

namespace {

// Line-aligned words.
struct Words {
  std::vector<uint32_t> memory;
  uint32_t* begin;

  explicit Words(int64_t lines) : memory(lines * 16 + 16), begin(memory.data()) {
    while (reinterpret_cast<uintptr_t>(begin) % 64 != 0) ++begin;
    for (int64_t w = 0; w < lines * 16; ++w) begin[w] = static_cast<uint32_t>(w) * 2654435761U;
  }
};

void all(Vectors vectors, int64_t lanes, const std::string& name) {
  bool sums = true, copies = true, chains = true;
  for (const int64_t lines : {1, 2, 3, 5, 17, 4099, 100'003}) {
    const Words from(lines);
    uint32_t right = 0;
    for (int64_t w = 0; w < lines * 16; ++w) right += from.begin[w];
    for (const int64_t passes : {1, 3}) {
      const uint32_t times = static_cast<uint32_t>(passes);
      sums = sums && ceiling_read(from.begin, lines, passes, vectors) == right * times;
    }
    Words to(lines);
    for (int64_t w = 0; w < lines * 16; ++w) to.begin[w] = 7;
    ceiling_copy(reinterpret_cast<const char*>(from.begin), lines,
                 reinterpret_cast<char*>(to.begin), vectors);
    for (int64_t w = 0; w < lines * 16; ++w) copies = copies && to.begin[w] == from.begin[w];
  }
  for (const int64_t steps : {1, 2, 1000, 1 << 20}) {
    const double done = static_cast<double>(steps * lanes * 12 * num_threads());
    chains = chains && ceiling_fma(steps, vectors) == done;
  }
  expect(sums, (name + ": every word is read in every pass").c_str());
  expect(copies, (name + ": a copy equals its source").c_str());
  expect(chains, (name + ": every multiply-add of every lane is counted").c_str());
}

}  // namespace

int main() {
  all(Vectors::k128, 4, "128 bits");
  if (has_vectors(Vectors::k256)) all(Vectors::k256, 8, "256 bits");
  if (has_vectors(Vectors::k512)) all(Vectors::k512, 16, "512 bits");
  expect(has_vectors(widest_vectors()), "the widest registers are supported");
  return failed();
}
