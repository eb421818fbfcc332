// Addresses of PyTorch-Direct's indexing kernel (Min et al., PVLDB 14(11), Listing 2).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gnnbench::cuda {

constexpr int kWarpSize = 32;  // as printed: lanes of a warp, and elements of a 128-byte line

// One element's positions, in elements from the start of the output and of the table.
template <class Index>
struct Element {
  Index dst, src;
};

// The element that thread i of the output copies: Listing 2, lines 11 to 33, with its names. Rows
// have feat_size elements of 4 bytes, and row is idx_list[i / feat_size]. shifted: with the
// circular shift, which brings src to dst's position in a line; it assumes that both arrays begin
// at a line.
template <class Index>
__host__ __device__ Element<Index> listing2(Index i, Index row, Index feat_size, bool shifted) {
  const Index dst_idx = i / feat_size;
  const Index offset = i % feat_size;
  const Index dst_start = dst_idx * feat_size;
  const Index src_start = row * feat_size;
  Element<Index> at{offset + dst_start, offset + src_start};
  if (shifted && feat_size > kWarpSize && feat_size % kWarpSize) {
    Index diff = (dst_start - src_start) % kWarpSize;
    diff = diff < 0 ? diff + kWarpSize : diff;
    at.dst += diff;
    at.src += diff;
    if (at.src >= src_start + feat_size) {
      at.dst -= feat_size;
      at.src -= feat_size;
    }
  }
  return at;
}

}  // namespace gnnbench::cuda
