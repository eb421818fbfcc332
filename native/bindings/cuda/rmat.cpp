// The operator of R-MAT graphs on the GPU. Memory beyond its CSC: two arrays of 8 bytes per edge.
#include "cuda/rmat/rmat.h"

#include <algorithm>
#include <tuple>

#include "bindings/cuda/common.h"
#include "bindings/cuda/notification.h"
#include "bindings/rmat_law.h"
#include "cuda/twin/twin.h"

namespace gnnbench::cuda {
namespace {

std::tuple<Tensor, Tensor> rmat_graph_cuda(int64_t key, int64_t scale, int64_t num_edges,
                                           std::vector<int64_t> ends, Tensor names) {
  check_cuda({{names, "names"}});
  const rmat::Law law = rmat_law(key, scale, num_edges, ends, names);
  const OnDevice on(names, "rmat_graph");
  const Launch& launch = on.launch();
  Tensor indptr = on.empty({names.numel() + 1}, ScalarType::Long);
  Tensor indices = on.empty({num_edges}, ScalarType::Int);
  const Tensor memory = on.empty({2, num_edges}, ScalarType::Long);
  const Tensor fault = on.empty({1}, ScalarType::Int);
  auto* keys = data<uint64_t>(memory);
  const uint64_t* sorted = keys;
  rmat_keys(launch, law, num_edges, data<const int64_t>(names), keys, data<int32_t>(fault));
  if (num_edges > 0) {
    const int bits = 2 * law.scale;
    const size_t bytes = sort_keys_scratch_bytes(launch, num_edges, bits);
    const Tensor scratch =
        on.empty({std::max<int64_t>(1, static_cast<int64_t>(bytes))}, ScalarType::Byte);
    sorted = sort_keys(launch, data<char>(scratch), bytes, keys, keys + num_edges, num_edges, bits);
  }
  twin_csc(launch, sorted, num_edges, names.numel(), law.scale, data<int64_t>(indptr),
           data<int32_t>(indices));
  const int64_t found = *read_numbers(on, {data<const int32_t>(fault), 1});
  if (found != 0) fail_names();
  return {indptr, indices};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("rmat_graph", TORCH_BOX(&rmat_graph_cuda)); }

}  // namespace gnnbench::cuda
