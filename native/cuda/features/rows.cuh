// How lanes share a row: the one copy of rows of all feature kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gnnbench::cuda {

constexpr int64_t kLineBytes = 128;  // of the GPU's cache, and of one request to the host

// A row of `units` of the widest type that divides it; a power of two of lanes shares it, and
// consecutive lanes read consecutive units.
template <class Unit>
struct RowShape {
  int64_t units;
  int lanes_log2 = 0;
  bool shifted;  // rows do not begin at lines: each is read from its first line's beginning on

  explicit RowShape(int64_t row_bytes, bool aligned = true)
      : units(row_bytes / static_cast<int64_t>(sizeof(Unit))),
        shifted(aligned && row_bytes > kLineBytes && row_bytes % kLineBytes != 0) {
    while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < units) ++lanes_log2;
  }

  __device__ void copy(const Unit* __restrict__ table, int64_t row, Unit* __restrict__ out,
                       int64_t place, int thread) const {
    Unit* to = out + place * units;
    read(table, row, thread, [to](int64_t at, Unit unit) { to[at] = unit; });
  }

  // PyTorch-Direct's circular shift (Listing 2): lanes begin at the row's first line boundary, so
  // that a warp asks for whole lines; what lies before it is read last. Calls write(at, unit) with
  // each unit of the row.
  template <class Write>
  __device__ void read(const Unit* __restrict__ table, int64_t row, int thread,
                       const Write& write) const {
    const Unit* from = table + row * units;
    int64_t shift = 0;
    if (shifted) {
      const int64_t off = static_cast<int64_t>(reinterpret_cast<uintptr_t>(from) % kLineBytes);
      shift = (kLineBytes - off) % kLineBytes / static_cast<int64_t>(sizeof(Unit));
    }
    const int lanes = 1 << lanes_log2;
    for (int64_t u = thread & (lanes - 1); u < units; u += lanes) {
      const int64_t at = u + shift < units ? u + shift : u + shift - units;
      write(at, from[at]);
    }
  }
};

// Calls run(Unit{}) with the widest unit that divides both addresses and the row.
template <class Run>
void with_unit(const void* table, const void* out, int64_t row_bytes, const Run& run) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out) |
                         static_cast<uintptr_t>(row_bytes);
  if (bits % 16 == 0) return run(uint4{});
  if (bits % 8 == 0) return run(uint2{});
  if (bits % 4 == 0) return run(uint32_t{});
  if (bits % 2 == 0) return run(uint16_t{});
  run(uint8_t{});
}

}  // namespace gnnbench::cuda
