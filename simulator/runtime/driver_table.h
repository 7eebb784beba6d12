// The driver functions that the runtime uses, found as NVIDIA's runtime finds them.
//
// Invariants
//  1. The only ways to the driver are dlopen("libcuda.so.1"), dlsym("cuGetProcAddress_v2") and
//     cuGetProcAddress. A lookup passes a base name, the version that introduced the wanted form,
//     and flag 2 for the per-thread-default-stream twin.
//  2. A function that the driver lacks answers CUDA_ERROR_NOT_SUPPORTED when called.
//  3. Both tables hold every function; functions without a stream are the same pointer in both.
//
// Never links libcuda, never calls cuGetExportTable.
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1  // keeps cuda.h from renaming cuMemAlloc to cuMemAlloc_v2
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#undef __CUDA_API_VERSION_INTERNAL

#include "simulator/runtime/driver_functions.h"

namespace spillway::simulator::runtime {

template <typename Pointer>
struct DriverFunction;

template <typename... Arguments>
struct DriverFunction<CUresult (*)(Arguments...)> {
  CUresult (*pointer)(Arguments...) = nullptr;
  CUresult operator()(Arguments... arguments) const {
    return pointer ? pointer(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
  }
};

struct DriverTable {
#define SPILLWAY_DRIVER_MEMBER(name, version) DriverFunction<PFN_##name##_v##version> name;
#define SPILLWAY_DRIVER_TWIN_MEMBER(name, version, twin_version) \
  DriverFunction<PFN_##name##_v##version> name;
  SPILLWAY_DRIVER_FUNCTIONS(SPILLWAY_DRIVER_MEMBER)
  SPILLWAY_DRIVER_TWINS(SPILLWAY_DRIVER_TWIN_MEMBER)
#undef SPILLWAY_DRIVER_MEMBER
#undef SPILLWAY_DRIVER_TWIN_MEMBER
};

enum class DefaultStream { kLegacy, kPerThread };

// True when libcuda.so.1 exists and has cuGetProcAddress_v2. Tries once; thread-safe.
bool LoadDriver();

const DriverTable& Driver(DefaultStream default_stream = DefaultStream::kLegacy);

PFN_cuGetProcAddress_v12000 DriverLookup();

}  // namespace spillway::simulator::runtime
