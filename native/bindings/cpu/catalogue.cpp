// The operator catalogue: every schema, once. The CUDA library adds implementations only.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY_FRAGMENT(gnnbench, m) {
  // Philox4x32-10 blocks. counters int64 [n, 4] of 32-bit words -> int64 [n, 4] of 32-bit words.
  m.def("philox(int key, Tensor counters) -> Tensor");

  // One hop. indptr int64 [num_nodes + 1], indices int32|int64 [num_edges], dst int32|int64 [n] ->
  // out_indptr int32 [n + 1], neighbors [edges] in the dtype of indices, positions int64 [edges]
  // (offsets into indices).
  m.def(
      "sample_hop(Tensor indptr, Tensor indices, Tensor dst, int fanout, str pick, int key, "
      "int hop, int batch) -> (Tensor out_indptr, Tensor neighbors, Tensor positions)");

  // Renaming in order of first occurrence, destinations (unique) first. Both of one id dtype ->
  // src_nodes [num_src] in that dtype, local int32 [neighbors].
  m.def("id_map(Tensor dst, Tensor neighbors) -> (Tensor src_nodes, Tensor local)");

  // A whole batch. For each hop, from the seeds outwards, the tensors of its block: indptr int32,
  // indices int32 (local ids), src_nodes in the dtype of indices and, with_positions, positions
  // int64. frontier is 'cumulative' or 'new'; with 'new' the blocks are prefixes (views) of one
  // CSC.
  m.def(
      "sample(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, str frontier, "
      "int key, int batch, bool with_positions) -> Tensor[]");

  // Rows of a table of any dtype and shape [n, ...]; ids int32|int64.
  m.def("gather(Tensor table, Tensor ids) -> Tensor");
  m.def("gather_out(Tensor table, Tensor ids, Tensor(a!) out) -> ()");

  // Rows of a host table in locked memory, read by the device of the ids; CUDA only.
  m.def("gather_zero_copy(Tensor table, Tensor ids) -> Tensor");

  // Aggregation over a block. x float32|float64 [num_src, dim], mode sum|mean|gcn -> [num_dst,
  // dim]; the backward takes the gradient of that and gives the one of x.
  m.def("aggregate(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode) -> Tensor");
  m.def(
      "aggregate_backward(Tensor indptr, Tensor indices, Tensor grad, int num_src, str mode) "
      "-> Tensor");
}
