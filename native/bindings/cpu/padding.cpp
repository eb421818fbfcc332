#include <algorithm>
#include <cstring>

#include "bindings/cpu/memory.h"
#include "bindings/pad_args.h"

namespace gnnbench {
namespace {

void pad_blocks_cpu(std::vector<Tensor> indptrs, std::vector<Tensor> indices,
                    std::vector<Tensor> weights, Tensor labels, std::vector<Tensor> room_indptrs,
                    std::vector<Tensor> room_indices, std::vector<Tensor> room_weights,
                    Tensor room_labels) {
  const PadArgs batch{indptrs, indices, weights, labels};
  const PadArgs room{room_indptrs, room_indices, room_weights, room_labels};
  for (const PadPiece& piece : pad_pieces(batch, room)) {
    check_cpu(*piece.to, "the padded batch");
    auto* const to = static_cast<int32_t*>(piece.to->data_ptr()) + piece.at;
    if (piece.from != nullptr) {
      check_cpu(*piece.from, "the batch");
      if (piece.words > 0) std::memcpy(to, piece.from->data_ptr(), piece.words * sizeof(int32_t));
      continue;
    }
    for (int64_t i = 0; i < piece.words; ++i) {
      to[i] = static_cast<int32_t>(std::min(piece.begin + i * piece.step, piece.most));
    }
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("pad_blocks", TORCH_BOX(&pad_blocks_cpu)); }

}  // namespace gnnbench
