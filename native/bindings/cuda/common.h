// Shared by the CUDA bindings: launches and allocations.
#pragma once

#include <cuda_runtime_api.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/checks.h"
#include "cuda/common/launch.h"

namespace gnnbench::cuda {

// Checks that all tensors of a call are on one CUDA device; names and tensors in pairs.
struct Named {
  const Tensor& tensor;
  const char* name;
};

inline void check_cuda(std::initializer_list<Named> tensors) {
  for (const Named& t : tensors) {
    if (!t.tensor.is_cuda()) fail(t.name, " must be on a CUDA device like the other arguments");
  }
  const Named& first = *tensors.begin();
  for (const Named& t : tensors) {
    if (t.tensor.get_device_index() != first.tensor.get_device_index()) {
      fail(t.name, " must be on the CUDA device of ", first.name);
    }
  }
}

// A tensor's address for a CUDA device, which must be current: its own address on that device, or
// the device address of pinned host memory (UVA). Rejects memory that the device cannot read.
inline const void* device_pointer(const Tensor& tensor, const char* name, int32_t device_index) {
  if (tensor.is_cuda() && tensor.get_device_index() == device_index) return tensor.data_ptr();
  const auto* first = static_cast<const char*>(tensor.data_ptr());
  const int64_t bytes = tensor.numel() * static_cast<int64_t>(tensor.element_size());
  if (bytes == 0) return first;
  const void* address = nullptr;
  for (const char* at : {first + bytes - 1, first}) {  // both ends: all of it must be pinned
    cudaPointerAttributes found{};
    const bool known = tensor.is_cpu() && cudaPointerGetAttributes(&found, at) == cudaSuccess &&
                       found.type == cudaMemoryTypeHost && found.devicePointer != nullptr;
    if (!known) {
      cudaGetLastError();  // an unknown address leaves no error behind
      fail(name, " must be on the CUDA device ", device_index,
           " or in host memory that is locked for CUDA; pin it with .pin_memory()");
    }
    address = found.devicePointer;
  }
  return address;
}

// The device has not enough memory for an allocation. The message starts like torch's.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Makes a tensor's device current, with its current stream, for the lifetime of the object.
class OnDevice {
 public:
  OnDevice(const Tensor& like, const char* op)
      : index_(like.get_device_index()), guard_(index_), launch_{nullptr, op} {
    // Torch's guard uses torch's copy of the CUDA runtime, but this library links another one.
    GNNBENCH_CUDA_CALL(launch_, cudaSetDevice(index_));
    void* stream = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(index_, &stream));
    launch_.stream = static_cast<cudaStream_t>(stream);
  }

  const Launch& launch() const { return launch_; }
  int32_t index() const { return index_; }

  // device_pointer() for this device.
  template <class T>
  const T* pointer(const Tensor& tensor, const char* name) const {
    return static_cast<const T*>(device_pointer(tensor, name, index_));
  }

  // Allocates by torch on the current stream, with undefined contents. It bypasses torch's boxed
  // dispatcher, which takes 2 us, because whole batches are sampled in 100 us.
  Tensor empty(const std::vector<int64_t>& sizes, ScalarType type) const {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) {
      strides[d - 1] =
          product_of_sizes(strides[d], std::max<int64_t>(sizes[d], 1), "a tensor's rows");
    }
    AtenTensorHandle tensor = nullptr;
    const auto status = aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(),
                                                 strides.data(), static_cast<int32_t>(type),
                                                 aoti_torch_device_type_cuda(), index_, &tensor);
    if (status != AOTI_TORCH_SUCCESS) {
      int64_t bytes =
          static_cast<int64_t>(aoti_torch_dtype_element_size(static_cast<int32_t>(type)));
      for (const int64_t size : sizes) bytes = product_of_sizes(bytes, size, "a tensor");
      throw_if_out_of_memory(bytes);
    }
    STABLE_TORCH_ERROR_CODE_CHECK(status);
    return Tensor(tensor);
  }

 private:
  // The stable interface does not report why an allocation failed. If the device still responds,
  // the cause is memory: the device's, or the limit of this process.
  void throw_if_out_of_memory(int64_t bytes) const {
    size_t free_bytes = 0, total = 0;
    cudaGetLastError();
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) return;
    throw OutOfMemory(std::string("CUDA out of memory in gnnbench::") + launch_.op + ": " +
                      std::to_string(bytes >> 20) + " MiB requested, " +
                      std::to_string(free_bytes >> 20) + " MiB of " + std::to_string(total >> 20) +
                      " free");
  }

  int32_t index_;
  torch::stable::accelerator::DeviceGuard guard_;
  Launch launch_;
};

// Several scratch arrays in one allocation: call add() for each, then allocate(), then at().
class Scratch {
 public:
  template <class T>
  size_t add(int64_t n) {
    if (n < 0 || static_cast<size_t>(n) > (kLargest - bytes_) / sizeof(T)) {
      fail("a batch would need ", n, " scratch entries of ", sizeof(T),
           " bytes of GPU memory; use a smaller batch or graph");
    }
    const size_t begin = bytes_;
    bytes_ += (std::max<int64_t>(n, 1) * sizeof(T) + 255) / 256 * 256;
    return begin;
  }

  void allocate(const OnDevice& on) {
    memory_ = on.empty({static_cast<int64_t>(bytes_)}, ScalarType::Byte);
  }

  // Replaces allocate(): uses memory of at least bytes() that outlives the call.
  void use(const Tensor& memory) { memory_ = memory; }

  size_t bytes() const { return bytes_; }

  template <class T>
  T* at(size_t begin) const {
    return reinterpret_cast<T*>(static_cast<char*>(memory_.data_ptr()) + begin);
  }

 private:
  static constexpr size_t kLargest = size_t{1} << 47;  // addresses have 47 bits

  size_t bytes_ = 0;
  Tensor memory_;
};

template <class T>
T* data(const Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}

// Part of a one-dimensional tensor. It bypasses torch's dispatcher, which takes 2 us.
inline Tensor view(const Tensor& buffer, int64_t begin, int64_t length) {
  const int64_t stride = 1;
  AtenTensorHandle handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(
      aoti_torch__reinterpret_tensor(buffer.get(), 1, &length, &stride, begin, &handle));
  return Tensor(handle);
}

// An int64 [n] tensor on the host.
inline Tensor host_numbers(const int64_t* from, int64_t n) {
  const int64_t stride = 1;
  AtenTensorHandle handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, &n, &stride, aoti_torch_dtype_int64(),
                                                         aoti_torch_device_type_cpu(), 0, &handle));
  const Tensor out(handle);
  std::copy(from, from + n, data<int64_t>(out));
  return out;
}

template <class Id>
constexpr ScalarType kIdType = sizeof(Id) == 4 ? ScalarType::Int : ScalarType::Long;

}  // namespace gnnbench::cuda
