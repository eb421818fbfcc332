// A batch's blocks and labels, and the tensors of fixed shape that they are padded to.
#pragma once

#include <vector>

#include "bindings/checks.h"

namespace gnnbench {

// Words of 4 bytes that are written contiguously: copies or, if `from` is null, numbers; the i-th
// number is min(begin + i * step, most).
struct PadPiece {
  const Tensor* from;
  const Tensor* to;
  int64_t at, words;  // in `to`, in words
  int64_t begin = 0, step = 0, most = 0;
};

// Contents of the padded tensors:
//
//     indptr    the batch's offsets   | the padding edges, evenly distributed over the padding rows
//     indices   the batch's           | unchanged
//     weights   the batch's           | unchanged
//     labels    the batch's           | -1
struct PadArgs {
  std::vector<Tensor> indptrs, indices, weights;
  Tensor labels;
};

inline void check_pad(const Tensor& from, const Tensor& to, const char* name, ScalarType type) {
  check_layout(from, name, 1);
  check_layout(to, name, 1);
  check_dtype(from, name, type);
  check_dtype(to, name, type);
  if (from.numel() > to.numel()) {
    fail(name, " must have at most ", to.numel(), " elements, they have ", from.numel());
  }
}

inline std::vector<PadPiece> pad_pieces(const PadArgs& batch, const PadArgs& room) {
  const size_t layers = batch.indptrs.size();
  const auto alike = [&](const PadArgs& args, const char* name) {
    if (args.indptrs.size() != layers || args.indices.size() != layers ||
        (!args.weights.empty() && args.weights.size() != layers)) {
      fail(name, " must have offsets and ids for each of the ", layers, " layers");
    }
  };
  alike(batch, "the batch");
  alike(room, "the padded batch");
  if (batch.weights.size() != room.weights.size()) {
    fail("weights must be given for both the batch and the padded batch, or for neither");
  }
  std::vector<PadPiece> pieces;
  for (size_t l = 0; l < layers; ++l) {
    const Tensor &indptr = batch.indptrs[l], &indices = batch.indices[l];
    check_pad(indptr, room.indptrs[l], "indptrs", ScalarType::Int);
    check_pad(indices, room.indices[l], "indices", ScalarType::Int);
    const int64_t edges = indices.numel(), all_edges = room.indices[l].numel();
    const int64_t begun = indptr.numel(), behind = room.indptrs[l].numel() - begun;
    if (begun < 1 || (behind == 0 && all_edges > edges)) {
      fail("indptrs of the padded batch must have a spare row for the padding edges");
    }
    pieces.push_back({&indptr, &room.indptrs[l], 0, begun});
    if (behind > 0) {
      const int64_t each = (all_edges - edges + behind - 1) / behind;
      pieces.push_back({nullptr, &room.indptrs[l], begun, behind, edges + each, each, all_edges});
    }
    pieces.push_back({&indices, &room.indices[l], 0, edges});
    if (!batch.weights.empty()) {
      check_pad(batch.weights[l], room.weights[l], "weights", ScalarType::Float);
      if (batch.weights[l].numel() != edges) fail("weights must have one value per edge");
      pieces.push_back({&batch.weights[l], &room.weights[l], 0, edges});
    }
  }
  check_pad(batch.labels, room.labels, "labels", ScalarType::Long);
  const int64_t labels = 2 * batch.labels.numel();
  pieces.push_back({&batch.labels, &room.labels, 0, labels});
  pieces.push_back({nullptr, &room.labels, labels, 2 * room.labels.numel() - labels, -1, 0, -1});
  for (const PadPiece& piece : pieces) {
    if (piece.from != nullptr) check_apart(*piece.to, "the padded batch", *piece.from, "the batch");
  }
  return pieces;
}

}  // namespace gnnbench
