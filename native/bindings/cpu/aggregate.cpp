#include "cpu/aggregate/aggregate.h"

#include "bindings/aggregate_args.h"
#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

void check_values(const Tensor& t, const char* name) {
  check_layout(t, name, 2);
  if (t.scalar_type() != ScalarType::Float && t.scalar_type() != ScalarType::Double) {
    fail(name, " must be float32 or float64, it is ", dtype_name(t.scalar_type()));
  }
  check_cpu(t, name);
}

BlockView check_block(const Tensor& indptr, const Tensor& indices, int64_t num_dst,
                      int64_t num_src) {
  check_layout(indptr, "indptr", 1);
  check_dtype(indptr, "indptr", ScalarType::Int);
  check_cpu(indptr, "indptr");
  check_layout(indices, "indices", 1);
  check_dtype(indices, "indices", ScalarType::Int);
  check_cpu(indices, "indices");
  if (num_dst < 0 || indptr.numel() != num_dst + 1) {
    fail("indptr must hold num_dst + 1 = ", num_dst + 1, " offsets, it holds ", indptr.numel());
  }
  if (num_src < num_dst) {
    fail("a block of ", num_dst, " destinations needs as many sources at least, it has ", num_src);
  }
  if (num_src > INT32_MAX || indices.numel() > INT32_MAX) {
    fail("a block must stay below 2^31 sources and edges");
  }
  const BlockView block{data<const int32_t>(indptr), data<const int32_t>(indices), num_dst,
                        indices.numel()};
  const int64_t row = find_bad_row(block);
  if (row >= 0) {
    fail("indptr must start at 0, never decrease and end at the number of edges; row ", row,
         " is wrong");
  }
  const int64_t edge = find_bad_id(block, num_src);
  if (edge >= 0) {
    fail("indices holds ", block.indices[edge], " at position ", edge,
         ", the block has the sources 0 to ", num_src - 1);
  }
  return block;
}

Tensor aggregate_cpu(Tensor indptr, Tensor indices, Tensor x, int64_t num_dst, std::string mode) {
  check_values(x, "x");
  const Aggregate m = aggregate_from_name(mode);
  const BlockView block = check_block(indptr, indices, num_dst, x.size(0));
  Tensor out = empty_cpu({num_dst, x.size(1)}, x.scalar_type());
  if (x.scalar_type() == ScalarType::Float) {
    aggregate(block, data<const float>(x), x.size(1), m, data<float>(out));
  } else {
    aggregate(block, data<const double>(x), x.size(1), m, data<double>(out));
  }
  return out;
}

template <class T>
void backward(const BlockView& block, const Tensor& grad, int64_t num_src, Aggregate mode,
              Tensor& grad_x) {
  const int64_t parts = transpose_parts();
  const Scratch<int32_t> counts(parts * num_src), indptr(num_src + 1), indices(block.num_edges);
  const Scratch<T> scale(block.num_rows);
  transpose(block, num_src, parts, counts.ptr, indptr.ptr, indices.ptr);
  const BlockView transposed{indptr.ptr, indices.ptr, num_src, block.num_edges};
  aggregate_backward(block, transposed, data<const T>(grad), grad.size(1), mode, scale.ptr,
                     data<T>(grad_x));
}

Tensor aggregate_backward_cpu(Tensor indptr, Tensor indices, Tensor grad, int64_t num_src,
                              std::string mode) {
  check_values(grad, "grad");
  const Aggregate m = aggregate_from_name(mode);
  const BlockView block = check_block(indptr, indices, grad.size(0), num_src);
  Tensor grad_x = empty_cpu({num_src, grad.size(1)}, grad.scalar_type());
  if (grad.scalar_type() == ScalarType::Float) {
    backward<float>(block, grad, num_src, m, grad_x);
  } else {
    backward<double>(block, grad, num_src, m, grad_x);
  }
  return grad_x;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("aggregate", TORCH_BOX(&aggregate_cpu));
  m.impl("aggregate_backward", TORCH_BOX(&aggregate_backward_cpu));
}

}  // namespace gnnbench
