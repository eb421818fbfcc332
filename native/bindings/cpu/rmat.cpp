// The operator of R-MAT graphs: schema, argument checks, launch.
#include "cpu/rmat/rmat.h"

#include <tuple>

#include "bindings/cpu/memory.h"
#include "bindings/rmat_law.h"

namespace gnnbench {

namespace {

std::tuple<Tensor, Tensor> rmat_graph(int64_t key, int64_t scale, int64_t num_edges,
                                      std::vector<int64_t> ends, Tensor names) {
  check_cpu(names, "names");
  const rmat::Law law = rmat_law(key, scale, num_edges, ends, names);
  Tensor indptr = empty_cpu(names.numel() + 1, ScalarType::Long);
  Tensor indices = empty_cpu(num_edges, ScalarType::Int);
  const Tensor keys = empty_cpu(num_edges, ScalarType::Long);
  const Tensor other = empty_cpu(num_edges, ScalarType::Long);
  if (!rmat::graph(law, num_edges, data<const int64_t>(names), data<uint64_t>(keys),
                   data<uint64_t>(other), data<int64_t>(indptr), data<int32_t>(indices))) {
    fail_names();
  }
  return {indptr, indices};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(gnnbench, m) {
  // CSC of in-neighbours: indptr int64 [2^scale + 1], indices int32 [num_edges], rows ascending,
  // with parallel edges. ends: cumulative probabilities of the first three quadrants, in 1/65536.
  // names int64 [2^scale]: a permutation that relabels the nodes.
  m.def(
      "rmat_graph(int key, int scale, int num_edges, int[] ends, Tensor names) -> "
      "(Tensor indptr, Tensor indices)");
}

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) { m.impl("rmat_graph", TORCH_BOX(&rmat_graph)); }

}  // namespace gnnbench
