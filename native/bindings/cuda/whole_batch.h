// Shared by whole-batch operators that work hop by hop: the format of the result.
#pragma once

#include <vector>

#include "bindings/cuda/stages.h"
#include "cuda/common/copies.h"

namespace gnnbench::cuda {

// A block. `carried` belongs to the edges: positions, the weights of random walks, or nothing.
struct BatchHop {
  Tensor indptr, local, src_nodes, carried;
  int64_t rows;  // of this hop only
};

// Copies `from` to offset `at` (in elements) of `to`.
inline Copy place(const Tensor& from, int64_t at, const Tensor& to) {
  const int64_t size = static_cast<int64_t>(from.element_size());
  return {from.data_ptr(), data<char>(to) + at * size, from.numel() * size};
}

// With frontier 'new': one CSC of all hops' rows, whose prefixes are the blocks. The offsets of a
// hop already continue those of the previous hop; its last offset is the next hop's first.
inline std::vector<BatchHop> join_hops(const OnDevice& on, const std::vector<BatchHop>& hops) {
  int64_t rows = 0, edges = 0, carried = 0;
  for (const BatchHop& hop : hops) {
    rows += hop.rows;
    edges += hop.local.numel();
    carried += hop.carried.numel();
  }
  const BatchHop& last = hops.back();
  const Tensor indptr = on.empty({rows + 1}, ScalarType::Int);
  const Tensor indices = on.empty({edges}, ScalarType::Int);
  const Tensor with = on.empty({carried}, last.carried.scalar_type());
  std::vector<Copy> copies;
  std::vector<BatchHop> out;
  rows = edges = carried = 0;
  for (const BatchHop& hop : hops) {
    const bool ends = &hop == &last;  // else the next hop starts with the offset that ends this one
    copies.push_back(place(ends ? hop.indptr : view(hop.indptr, 0, hop.rows), rows, indptr));
    copies.push_back(place(hop.local, edges, indices));
    copies.push_back(place(hop.carried, carried, with));
    rows += hop.rows;
    edges += hop.local.numel();
    carried += hop.carried.numel();
    out.push_back({view(indptr, 0, rows + 1), view(indices, 0, edges),
                   view(last.src_nodes, 0, hop.src_nodes.numel()), view(with, 0, carried), rows});
  }
  copy_all(on.launch(), copies);
  return out;
}

// Returns the blocks in the format of the catalogue.
inline std::vector<Tensor> answer(const OnDevice& on, std::vector<BatchHop> hops, bool only_new,
                                  bool with_carried) {
  if (only_new) {
    hops = join_hops(on, hops);
    trace_mark(on.launch(), Stage::kBlock, kWholeBatch);
  }
  std::vector<Tensor> out;
  for (const BatchHop& hop : hops) {
    for (const Tensor& t : {hop.indptr, hop.local, hop.src_nodes}) out.push_back(t);
    if (with_carried) out.push_back(hop.carried);
  }
  return out;
}

}  // namespace gnnbench::cuda
