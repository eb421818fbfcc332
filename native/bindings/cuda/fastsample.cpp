#include "bindings/cuda/fused_batch.h"

namespace gnnbench::cuda {
namespace {

std::vector<Tensor> fastsample_cuda(Tensor indptr, Tensor indices, Tensor seeds,
                                    std::vector<int64_t> fanouts, std::string pick,
                                    std::vector<Tensor> tables, std::vector<int64_t> walk,
                                    std::string frontier, int64_t key, int64_t batch,
                                    bool with_positions, Tensor dense_map,
                                    std::vector<int64_t> capacity) {
  FusedRequest request("fastsample", indptr, indices, seeds, fanouts, pick, tables, walk, frontier,
                       with_positions, capacity);
  check_layout(dense_map, "dense_map", 1);
  check_dtype(dense_map, "dense_map", ScalarType::Int);
  check_cuda({{seeds, "seeds"}, {dense_map, "dense_map"}});
  if (dense_map.numel() != indptr.numel() - 1) {
    fail("dense_map must have one entry per node, ", indptr.numel() - 1, ", it has ",
         dense_map.numel());
  }
  check_apart(dense_map, "dense_map", indptr, "indptr");
  check_apart(dense_map, "dense_map", indices, "indices");
  check_apart(dense_map, "dense_map", seeds, "seeds");
  check_seed_count(request.work.seeds, request.work.num_nodes);
  // An empty map has a null address, which would select a hash table. No seed is valid then anyway.
  static int32_t none;
  request.dense = dense_map.numel() == 0 ? &none : data<int32_t>(dense_map);
  request.key = static_cast<uint64_t>(key);
  request.batch = check_u32(batch, "batch", int64_t{1} << 32);
  return fused_sample(request);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("fastsample", TORCH_BOX(&fastsample_cuda)); }

}  // namespace gnnbench::cuda
