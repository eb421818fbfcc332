// Host memory by the driver's virtual memory management: pages of 2 MiB, which neither registered
// memory nor cudaHostAlloc provides, so that the device translates fewer addresses.
//
// Driver functions are looked up at run time, so that the library does not link libcuda.
#include <cuda.h>

#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

constexpr unsigned kVersion = 12020;  // of the driver interface with host locations
const char* const kUseInstead = "; use registered memory instead";

template <class F>
F entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &how);
  if (status != cudaSuccess || how != cudaDriverEntryPointSuccess || found == nullptr) {
    cudaGetLastError();
    fail("this CUDA driver has no ", name, " for host memory", kUseInstead);
  }
  return reinterpret_cast<F>(found);
}

struct Driver {
  decltype(&cuDeviceGet) device = entry<decltype(&cuDeviceGet)>("cuDeviceGet");
  decltype(&cuGetErrorName) error_name = entry<decltype(&cuGetErrorName)>("cuGetErrorName");
  decltype(&cuMemGetAllocationGranularity) granularity =
      entry<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemCreate) create = entry<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = entry<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemAddressReserve) reserve =
      entry<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free_address = entry<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemMap) map = entry<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = entry<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = entry<decltype(&cuMemSetAccess)>("cuMemSetAccess");

  static const Driver& get() {
    static const Driver driver;  // a failed lookup throws and is repeated next time
    return driver;
  }

  void check(CUresult status, const char* what, int64_t bytes) const {
    if (status == CUDA_SUCCESS) return;
    const char* name = nullptr;
    if (error_name(status, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
      fail_memory("cannot allocate memory: the CUDA driver cannot pin ", bytes,
                  " bytes of host memory (", name, " in ", what,
                  "); free memory, or use a feature store that the GPU does not read");
    }
    fail("the CUDA driver cannot map host memory here (", name, " in ", what, ")", kUseInstead);
  }
};

// An address range and its pages. Undone in reverse order, as far as it was made.
class Mapping {
 public:
  Mapping(const Driver& driver, int device, int64_t wanted) : driver_(driver) {
    int node = 0;
    if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, device) != cudaSuccess || node < 0) {
      cudaGetLastError();
      node = 0;  // without NUMA there is one node
    }
    CUdevice ordinal = 0;
    driver.check(driver.device(&ordinal, device), "cuDeviceGet", wanted);
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop.location.id = node;
    size_t unit = 0;
    driver.check(driver.granularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "cuMemGetAllocationGranularity", wanted);
    bytes_ = (static_cast<size_t>(wanted) + unit - 1) / unit * unit;
    try {
      driver.check(driver.reserve(&at_, bytes_, unit, 0, 0), "cuMemAddressReserve", wanted);
      CUmemGenericAllocationHandle pages = 0;
      driver.check(driver.create(&pages, bytes_, &prop, 0), "cuMemCreate", wanted);
      const CUresult mapped = driver.map(at_, bytes_, 0, pages, 0);
      driver.release(pages);  // the mapping keeps the pages alive
      driver.check(mapped, "cuMemMap", wanted);
      mapped_ = true;
      CUmemAccessDesc access[2]{};
      access[0].location = prop.location;
      access[1].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      access[1].location.id = ordinal;
      for (CUmemAccessDesc& one : access) one.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      driver.check(driver.set_access(at_, bytes_, access, 2), "cuMemSetAccess", wanted);
    } catch (...) {
      undo();
      throw;
    }
  }

  void* address() const { return reinterpret_cast<void*>(at_); }

  // At process exit the driver, and the memory with it, may be gone: errors are ignored.
  void undo() const noexcept {
    if (mapped_) driver_.unmap(at_, bytes_);
    if (at_ != 0) driver_.free_address(at_, bytes_);
  }

 private:
  const Driver& driver_;
  CUdeviceptr at_ = 0;
  size_t bytes_ = 0;
  bool mapped_ = false;
};

// Waits for kernels that read the memory, because a missing page would end the context.
void free_mapping(const Mapping& mapping, int device) noexcept {
  int before = device;
  cudaGetDevice(&before);
  cudaSetDevice(device);
  cudaDeviceSynchronize();
  mapping.undo();
  cudaSetDevice(before);
  cudaGetLastError();
}

Tensor vmm_memory_cuda(Tensor like, int64_t bytes) {
  check_cuda({{like, "like"}});
  if (bytes < 1) fail("bytes must be at least 1, it is ", bytes);
  const OnDevice on(like, "vmm_memory");
  const int device = on.index();
  const Mapping mapping(Driver::get(), device, bytes);
  const int64_t stride = 1;
  try {
    return torch::stable::from_blob(mapping.address(), {&bytes, 1}, {&stride, 1},
                                    torch::stable::Device(torch::headeronly::DeviceType::CPU),
                                    ScalarType::Byte,
                                    [mapping, device](void*) { free_mapping(mapping, device); });
  } catch (...) {
    mapping.undo();
    throw;
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) { m.impl("vmm_memory", TORCH_BOX(&vmm_memory_cuda)); }

}  // namespace gnnbench::cuda
