// A stream whose kernels run on a subset of a GPU's multiprocessors, by a green context of the
// driver.
#include <cuda.h>
#include <cudaTypedefs.h>

#include "bindings/cuda/common.h"

namespace gnnbench::cuda {
namespace {

// A driver function of this version, or null if the driver lacks it. The driver is not linked.
template <class Function>
Function driver_function(const Launch& launch, const char* name, unsigned int version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  GNNBENCH_CUDA_CALL(
      launch, cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status));
  return status == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

struct Driver {
  explicit Driver(const Launch& on)
      : device(driver_function<PFN_cuDeviceGet_v2000>(on, "cuDeviceGet", 2000)),
        resource(driver_function<PFN_cuDeviceGetDevResource_v12040>(on, "cuDeviceGetDevResource",
                                                                    12040)),
        split(driver_function<PFN_cuDevSmResourceSplitByCount_v12040>(
            on, "cuDevSmResourceSplitByCount", 12040)),
        describe(driver_function<PFN_cuDevResourceGenerateDesc_v12040>(
            on, "cuDevResourceGenerateDesc", 12040)),
        create(driver_function<PFN_cuGreenCtxCreate_v12040>(on, "cuGreenCtxCreate", 12040)),
        stream(driver_function<PFN_cuGreenCtxStreamCreate_v12050>(on, "cuGreenCtxStreamCreate",
                                                                  12050)),
        destroy(driver_function<PFN_cuGreenCtxDestroy_v12040>(on, "cuGreenCtxDestroy", 12040)) {}

  bool whole() const {
    return device && resource && split && describe && create && stream && destroy;
  }

  PFN_cuDeviceGet_v2000 device;
  PFN_cuDeviceGetDevResource_v12040 resource;
  PFN_cuDevSmResourceSplitByCount_v12040 split;
  PFN_cuDevResourceGenerateDesc_v12040 describe;
  PFN_cuGreenCtxCreate_v12040 create;
  PFN_cuGreenCtxStreamCreate_v12050 stream;
  PFN_cuGreenCtxDestroy_v12040 destroy;
};

// Returns the driver's first error, or the stream and its multiprocessors. The context and its
// stream are never destroyed, because torch's allocator can keep memory of the stream indefinitely.
CUresult make(const Driver& driver, int32_t index, int64_t sms, CUstream& stream, int64_t& given) {
  CUdevice device = 0;
  if (const CUresult e = driver.device(&device, index)) return e;
  CUdevResource all{}, some{}, rest{};
  if (const CUresult e = driver.resource(device, &all, CU_DEV_RESOURCE_TYPE_SM)) return e;
  if (sms > all.sm.smCount) fail("sms must be at most ", all.sm.smCount, ", it is ", sms);
  unsigned int groups = 1;
  const auto wanted = static_cast<unsigned int>(sms);
  if (const CUresult e = driver.split(&some, &groups, &all, &rest, 0, wanted)) return e;
  if (groups != 1) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  CUdevResourceDesc what = nullptr;
  if (const CUresult e = driver.describe(&what, &some, 1)) return e;
  CUgreenCtx context = nullptr;
  if (const CUresult e = driver.create(&context, what, device, CU_GREEN_CTX_DEFAULT_STREAM)) {
    return e;
  }
  if (const CUresult e = driver.stream(&stream, context, CU_STREAM_NON_BLOCKING, 0)) {
    driver.destroy(context);
    return e;
  }
  given = some.sm.smCount;
  return CUDA_SUCCESS;
}

Tensor limited_stream_cuda(Tensor like, int64_t sms) {
  const OnDevice on(like, "limited_stream");
  if (sms < 1) fail("sms must be at least 1, it is ", sms);
  Tensor out = torch::stable::empty({3}, ScalarType::Long);
  int64_t* result = data<int64_t>(out);
  CUstream stream = nullptr;
  int64_t given = 0;
  const Driver driver(on.launch());
  result[0] =
      driver.whole() ? make(driver, on.index(), sms, stream, given) : CUDA_ERROR_NOT_SUPPORTED;
  result[1] = reinterpret_cast<int64_t>(stream);
  result[2] = given;
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CUDA, m) {
  m.impl("limited_stream", TORCH_BOX(&limited_stream_cuda));
}

}  // namespace gnnbench::cuda
