#include <vector>

#include "bindings/cuda/common.h"
#include "bindings/pad_args.h"
#include "cuda/common/copies.h"

namespace gnnbench::cuda {
namespace {

void pad_blocks_cuda(std::vector<Tensor> indptrs, std::vector<Tensor> indices,
                     std::vector<Tensor> weights, Tensor labels, std::vector<Tensor> room_indptrs,
                     std::vector<Tensor> room_indices, std::vector<Tensor> room_weights,
                     Tensor room_labels) {
  const PadArgs batch{indptrs, indices, weights, labels};
  const PadArgs room{room_indptrs, room_indices, room_weights, room_labels};
  std::vector<Copy> copies;
  for (const PadPiece& piece : pad_pieces(batch, room)) {
    check_cuda({{room_labels, "labels"}, {*piece.to, "the padded batch"}});
    auto* const to = static_cast<int32_t*>(piece.to->data_ptr()) + piece.at;
    const void* from = nullptr;
    if (piece.from != nullptr) {
      check_cuda({{room_labels, "labels"}, {*piece.from, "the batch"}});
      from = piece.from->data_ptr();
      if (piece.words == 0) continue;
    }
    copies.push_back(
        {from, to, piece.words * int64_t{sizeof(int32_t)}, piece.begin, piece.step, piece.most});
  }
  const OnDevice on(room_labels, "pad_blocks");
  copy_all(on.launch(), copies);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("pad_blocks", TORCH_BOX(&pad_blocks_cuda)); }

}  // namespace gnnbench::cuda
