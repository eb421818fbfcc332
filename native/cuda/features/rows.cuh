// How lanes share a row. All feature kernels copy rows with this code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gnnbench::cuda {

constexpr uint32_t kLineBytes = 128;  // of the GPU's cache and of one request to the host

// A row of `units` of the widest type that divides it. A power of two of lanes shares it, and
// consecutive lanes read consecutive units.
template <class Unit>
struct RowShape {
  int32_t units;
  int lanes_log2 = 0;
  bool shifted;  // rows are not line-aligned: each is read from its first line boundary

  explicit RowShape(int64_t row_bytes, bool aligned = true)
      : units(static_cast<int32_t>(row_bytes / static_cast<int64_t>(sizeof(Unit)))),
        shifted(aligned && row_bytes > kLineBytes && row_bytes % kLineBytes != 0) {
    while (lanes_log2 < 5 && (1 << lanes_log2) < units) ++lanes_log2;
  }

  __device__ void copy(const Unit* __restrict__ table, int64_t row, Unit* __restrict__ out,
                       int64_t place, int thread) const {
    Unit* to = out + place * static_cast<int64_t>(units);
    const int64_t rows[] = {row};
    read(table, rows, thread, [to](int, int32_t at, Unit unit) { to[at] = unit; });
  }

  // PyTorch-Direct's circular shift (Listing 2): lanes begin at the row's first line boundary, so
  // that a warp requests whole lines; the part before it is read last. Of kDepth rows, those with
  // -1 are skipped. All units are requested before the first one is awaited; then write(nth, at,
  // unit) is called for each.
  template <class Row, int kDepth, class Write>
  __device__ void read(const Unit* __restrict__ table, const Row (&rows)[kDepth], int thread,
                       const Write& write) const {
    constexpr Row kNone = static_cast<Row>(-1);
    const int lanes = 1 << lanes_log2;
    for (int32_t u = thread & (lanes - 1); u < units; u += lanes) {
      Unit unit[kDepth];
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        if (rows[d] == kNone) continue;
        const Unit* from = table + static_cast<int64_t>(rows[d]) * units;
        unit[d] = from[place(from, u)];
      }
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        if (rows[d] == kNone) continue;
        write(d, place(table + static_cast<int64_t>(rows[d]) * units, u), unit[d]);
      }
    }
  }

 private:
  // The unit that a lane reads instead of the u-th, with units counted from the row's first.
  __device__ int32_t place(const Unit* __restrict__ from, int32_t u) const {
    if (!shifted) return u;
    const uint32_t off = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from)) % kLineBytes;
    const int32_t shift = static_cast<int32_t>((kLineBytes - off) % kLineBytes / sizeof(Unit));
    return u + shift < units ? u + shift : u + shift - units;
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
