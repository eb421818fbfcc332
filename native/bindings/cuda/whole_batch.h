// What whole-batch operators that go hop by hop share: the form of their answer.
#pragma once

#include <vector>

#include "bindings/cuda/stages.h"

namespace gnnbench::cuda {

// A block. `carried` is what goes with each edge: positions, the weights of random walks, or
// nothing.
struct BatchHop {
  Tensor indptr, local, src_nodes, carried;
  int64_t rows;  // of this hop alone
};

// Copies `from` to offset `at` (in elements) of `to`, on the stream.
inline void place(const OnDevice& on, const Tensor& from, int64_t at, const Tensor& to) {
  const size_t size = from.element_size();
  const size_t bytes = static_cast<size_t>(from.numel()) * size;
  if (bytes == 0) return;
  GNNBENCH_CUDA_CALL(on.launch(),
                     cudaMemcpyAsync(data<char>(to) + at * size, from.data_ptr(), bytes,
                                     cudaMemcpyDeviceToDevice, on.launch().stream));
}

// With the frontier 'new': one CSC of all hops' rows, whose prefixes are the blocks. The offsets of
// a hop already count on from the hop before; its last one is the next hop's first.
inline std::vector<BatchHop> join_hops(const OnDevice& on, const std::vector<BatchHop>& hops) {
  const auto prefix = [](Tensor& t, int64_t n) { return torch::stable::narrow(t, 0, 0, n); };
  int64_t rows = 0, edges = 0, carried = 0;
  for (const BatchHop& hop : hops) {
    rows += hop.rows;
    edges += hop.local.numel();
    carried += hop.carried.numel();
  }
  const BatchHop& last = hops.back();
  Tensor indptr = on.empty({rows + 1}, ScalarType::Int);
  Tensor indices = on.empty({edges}, ScalarType::Int);
  Tensor with = on.empty({carried}, last.carried.scalar_type());
  Tensor nodes = last.src_nodes;
  std::vector<BatchHop> out;
  rows = edges = carried = 0;
  for (const BatchHop& hop : hops) {
    place(on, hop.indptr, rows, indptr);
    place(on, hop.local, edges, indices);
    place(on, hop.carried, carried, with);
    rows += hop.rows;
    edges += hop.local.numel();
    carried += hop.carried.numel();
    out.push_back({prefix(indptr, rows + 1), prefix(indices, edges),
                   prefix(nodes, hop.src_nodes.numel()), prefix(with, carried), rows});
  }
  return out;
}

// The blocks in the catalogue's form.
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
