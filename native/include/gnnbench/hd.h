// Functions marked GNNBENCH_HD are compiled for host and device, so that both share one definition.
#pragma once

#ifdef __CUDACC__
#define GNNBENCH_HD __host__ __device__ __forceinline__
#else
#define GNNBENCH_HD inline
#endif
