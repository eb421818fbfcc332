// The launchers of native/cuda/aggregate under names that Python can call.
#include "cuda/aggregate/aggregate.h"

#include <cmath>

#include "cuda/aggregate/edges.h"
#include "cuda/aggregate/groups.h"
#include "cuda/aggregate/memory_aware.h"
#include "cuda/aggregate/memory_aware_warp.h"
#include "cuda/aggregate/spread_rows.h"
#include "cuda/aggregate/transpose.h"
#include "cuda/aggregate/tuned.h"
#include "cuda/common/scan.h"
#include "tests/cuda_on_host/device.h"

namespace gnnbench::cuda {

template <>
size_t scan_scratch_bytes<int32_t>(Launch, int64_t) {
  return 0;
}
template <>
void exclusive_scan<int32_t>(Launch, void*, size_t, int32_t* data, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t own = data[i];
    data[i] = sum;
    sum += own;
  }
}

}  // namespace gnnbench::cuda

using namespace gnnbench::cuda;
using gnnbench::Aggregate;

namespace {

constexpr Launch kLaunch{nullptr, "test"};

// Calls f with a null pointer of the dtype's type: float32, float64, float16, bfloat16.
template <class F>
void by_dtype(int dtype, const F& f) {
  switch (dtype) {
    case 0: return f(static_cast<float*>(nullptr));
    case 1: return f(static_cast<double*>(nullptr));
    case 2: return f(static_cast<__half*>(nullptr));
    default: return f(static_cast<__nv_bfloat16*>(nullptr));
  }
}
template <class F>
void by_sum_dtype(int dtype, const F& f) {
  if (dtype == 0) return f(static_cast<float*>(nullptr));
  return f(static_cast<double*>(nullptr));
}
template <class P>
using Type = std::remove_pointer_t<P>;

}  // namespace

extern "C" {

void seed(uint64_t value) { on_host::draws.seed(value); }

// kernel 0: simple, `a` and `b` unused; 1: tuned with `a` rows per group; 2: Memory-Aware with `a`
// targets and `b` dims; 3: spread rows; 4 and 5: Memory-Aware by warps, forward and backward, with
// `a` columns and `b` = 8 * warps + rows; 6: scatter of Memory-Aware like 2, `out` in the dtype of
// sums.
void row_sums_of(int kernel, int dtype, const int32_t* indptr, const int32_t* columns,
                 int64_t num_rows, int64_t num_edges, int64_t num_columns, int64_t dim,
                 const void* x, void* out, int mode, const void* weights, int64_t heads,
                 const int32_t* block_indptr, const int32_t* edges, const void* totals,
                 int64_t num_dst, int a, int b) {
  by_dtype(dtype, [&](auto* type) {
    using T = Type<decltype(type)>;
    const RowSums<T> sums{indptr,
                          columns,
                          num_rows,
                          num_edges,
                          num_columns,
                          dim,
                          static_cast<const T*>(x),
                          static_cast<T*>(out),
                          static_cast<Aggregate>(mode),
                          static_cast<const Sum<T>*>(weights),
                          heads,
                          block_indptr,
                          edges,
                          static_cast<const Sum<T>*>(totals),
                          num_dst};
    if (kernel == 0) {
      aggregate(kLaunch, indptr, columns, sums.x, sums.weights, num_edges, num_columns, num_rows,
                dim, sums.mode, sums.out);
    } else if (kernel == 1) {
      row_sums(kLaunch, sums, a);
    } else if (kernel == 3) {
      const int64_t chunks = num_chunks(num_edges, num_rows);
      const auto kept = static_cast<size_t>(chunks > 1 ? chunks : 0);
      // Uninitialised memory can hold any value.
      std::vector<Sum<T>> begun(kept * dim, NAN), reached(kept * dim, NAN);
      std::vector<int32_t> rows(kept, 12345);
      spread_row_sums(
          kLaunch, sums,
          kept > 0 ? RowPieces<T>{begun.data(), reached.data(), rows.data()} : RowPieces<T>{});
    } else if (kernel == 4) {
      memory_aware_warp(kLaunch, sums, {b / 8, a, b % 8});
    } else if (kernel == 5) {
      const auto kept = static_cast<size_t>(warp_pieces(num_edges));
      const auto long_rows = static_cast<size_t>(warp_long_rows(num_edges));
      std::vector<int32_t> counts(2), row(kept, 12345), begin(kept, 12345);
      std::vector<int32_t> long_row(long_rows, 12345), first_piece(long_rows, 12345);
      std::vector<Sum<T>> kept_sums(kept * dim, NAN);
      memory_aware_warp_transposed(
          kLaunch, sums, {b / 8, a, b % 8},
          WarpPieces<T>{counts.data(), row.data(), begin.data(), long_row.data(),
                        first_piece.data(), kept_sums.data(),
                        static_cast<int32_t>(warp_piece_edges(num_edges))});
    } else if (kernel == 6) {
      std::fill_n(static_cast<Sum<T>*>(out), num_columns * dim, Sum<T>(0));
      memory_aware_scatter(kLaunch, sums, static_cast<Sum<T>*>(out), a, b);
    } else {
      memory_aware(kLaunch, sums, a, b);
    }
  });
}

void transpose_of(const int32_t* indptr, const int32_t* indices, int64_t num_edges, int64_t num_src,
                  int64_t num_dst, int32_t* t_indptr, int32_t* t_dst, int32_t* t_edge) {
  std::vector<int32_t> ranks(num_edges);
  std::vector<uint64_t> placed(num_edges), merged(num_edges);
  transpose(kLaunch, indptr, indices, num_edges, num_src, num_dst,
            {ranks.data(), placed.data(), merged.data(), nullptr, 0}, t_indptr, t_dst, t_edge);
}

void edge_add_of(int dtype, const int32_t* indptr, const int32_t* indices, const void* src,
                 const void* dst, int64_t num_edges, int64_t num_src, int64_t num_rows,
                 int64_t heads, void* out) {
  by_sum_dtype(dtype, [&](auto* type) {
    using T = Type<decltype(type)>;
    edge_add(kLaunch, indptr, indices, static_cast<const T*>(src), static_cast<const T*>(dst),
             num_edges, num_src, num_rows, heads, static_cast<T*>(out));
  });
}

void edge_softmax_of(int dtype, const int32_t* indptr, const void* values, const void* grad,
                     int64_t num_edges, int64_t num_rows, int64_t heads, void* out) {
  by_sum_dtype(dtype, [&](auto* type) {
    using T = Type<decltype(type)>;
    if (grad == nullptr) {
      edge_softmax(kLaunch, indptr, static_cast<const T*>(values), num_edges, num_rows, heads,
                   static_cast<T*>(out));
    } else {
      edge_softmax_backward(kLaunch, indptr, static_cast<const T*>(values),
                            static_cast<const T*>(grad), num_edges, num_rows, heads,
                            static_cast<T*>(out));
    }
  });
}

void edge_dots_of(int dtype, const int32_t* indptr, const int32_t* indices, const void* rows,
                  const void* x, int64_t num_edges, int64_t num_src, int64_t num_rows,
                  int64_t heads, int64_t width, void* out) {
  by_dtype(dtype, [&](auto* type) {
    using T = Type<decltype(type)>;
    edge_dots(kLaunch, indptr, indices, static_cast<const T*>(rows), static_cast<const T*>(x),
              num_edges, num_src, num_rows, heads, width, static_cast<Sum<T>*>(out));
  });
}

// Returns the number of groups. starts and rows have space for one group per edge.
int64_t groups_of(const int32_t* indptr, int64_t num_rows, int64_t group, int32_t* starts,
                  int32_t* rows) {
  std::vector<int32_t> offsets(num_rows + 1);
  count_groups(kLaunch, indptr, num_rows, group, nullptr, 0, offsets.data());
  write_groups(kLaunch, indptr, offsets.data(), num_rows, group, starts, rows);
  return offsets.back();
}

void sum_groups_of(int dtype, const int32_t* starts, const int32_t* rows, int64_t num_groups,
                   const int32_t* indices, int64_t num_edges, const void* x, int64_t num_src,
                   int64_t dim, int64_t num_rows, int dim_workers, void* out) {
  by_sum_dtype(dtype, [&](auto* type) {
    using T = Type<decltype(type)>;
    sum_groups(kLaunch, starts, rows, num_groups, indices, num_edges, static_cast<const T*>(x),
               num_src, dim, num_rows, dim_workers, static_cast<T*>(out));
  });
}
}
