// Memory of CPU operators: returned tensors and scratch.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <algorithm>
#include <new>
#include <sstream>
#include <vector>

#include "bindings/checks.h"
#include "cpu/common/pages.h"
#include "cpu/common/workspace.h"

namespace gnnbench {

// Allocates with undefined contents. It bypasses torch's boxed dispatcher, which takes 2 us,
// because a batch returns ten tensors.
inline Tensor empty_cpu(const int64_t* sizes, const int64_t* strides, int64_t dim,
                        ScalarType type) {
  AtenTensorHandle tensor = nullptr;
  const auto status = aoti_torch_empty_strided(dim, sizes, strides, static_cast<int32_t>(type),
                                               aoti_torch_device_type_cpu(), 0, &tensor);
  if (status != AOTI_TORCH_SUCCESS) {  // the stable interface does not report why
    std::ostringstream shape;
    for (int64_t d = 0; d < dim; ++d) shape << (d == 0 ? "" : ", ") << sizes[d];
    fail_memory("not enough memory for a tensor [", shape.str(), "] of ", dtype_name(type));
  }
  return Tensor(tensor);
}

inline Tensor empty_cpu(int64_t n, ScalarType type) {
  const int64_t stride = 1;
  return empty_cpu(&n, &stride, 1, type);
}

inline Tensor empty_cpu(const std::vector<int64_t>& sizes, ScalarType type) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) {
    strides[d - 1] =
        product_of_sizes(strides[d], std::max<int64_t>(sizes[d], 1), "a tensor's rows");
  }
  return empty_cpu(sizes.data(), strides.data(), static_cast<int64_t>(sizes.size()), type);
}

// The same for rows that are written in full: in huge pages, so that a large result costs fewer
// page faults.
inline Tensor empty_rows(const std::vector<int64_t>& sizes, ScalarType type) {
  Tensor rows = empty_cpu(sizes, type);
  const auto bytes = static_cast<size_t>(rows.numel()) * rows.element_size();
  if (bytes >= 2 * kHugePage) prefer_huge_pages(rows.data_ptr(), bytes);
  return rows;
}

// The first n entries of a one-dimensional tensor, as a view.
inline Tensor prefix(const Tensor& t, int64_t n) {
  const int64_t stride = 1;
  AtenTensorHandle tensor = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(
      aoti_torch__reinterpret_tensor(t.get(), 1, &n, &stride, 0, &tensor));
  return Tensor(tensor);
}

template <class T>
T* data(const Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}

// Allocates scratch for n entries. Fails if n is negative or memory is insufficient.
inline Workspace::Piece piece_of(int64_t n, size_t entry_bytes) {
  if (n >= 0 && static_cast<uint64_t>(n) <= Workspace::Piece::kLargest / entry_bytes) {
    try {
      return Workspace::Piece(static_cast<size_t>(n) * entry_bytes);
    } catch (const std::bad_alloc&) {
    }
  }
  fail_memory("not enough memory for ", n, " scratch entries of ", entry_bytes,
              " bytes; use a smaller batch or graph");
}

// Scratch for n entries from the calling thread's workspace.
template <class T>
struct Scratch {
  Workspace::Piece piece;
  T* ptr;
  explicit Scratch(int64_t n) : piece(piece_of(n, sizeof(T))), ptr(static_cast<T*>(piece.get())) {}
};

template <class Id>
constexpr ScalarType kIdType = sizeof(Id) == 4 ? ScalarType::Int : ScalarType::Long;

}  // namespace gnnbench
