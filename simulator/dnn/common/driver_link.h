// How the simulated cuDNN and cuBLAS reach the driver: a handful of entry points, found as the real
// libraries find them.
//
// Called from: the API functions of both libraries, on the program's threads; never from a kernel
// body. Ownership: the table is filled on first use and lives as long as the process.
//
// Invariants
//  1. The driver is reached only by dlopen("libcuda.so.1"), dlsym("cuGetProcAddress_v2") and
//  cuGetProcAddress, so that
//     whatever sits under a program by SONAME or by its dlsym sees every call of these libraries.
//  2. No device memory is allocated; the only driver calls after start are launches, and for
//  results in host memory
//     one small pinned buffer and a wait for the stream.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace spillway::simulator::dnn {

struct DriverTable {
  CUresult (*Init)(unsigned flags);
  CUresult (*DriverGetVersion)(int* version);
  CUresult (*CtxGetCurrent)(CUcontext* context);
  CUresult (*CtxSetCurrent)(CUcontext context);
  CUresult (*CtxGetDevice)(CUdevice* device);
  CUresult (*DevicePrimaryCtxRetain)(CUcontext* context, CUdevice device);
  CUresult (*DeviceGetAttribute)(int* value, CUdevice_attribute attribute, CUdevice device);
  CUresult (*LibraryLoadData)(CUlibrary* library, const void* code, CUjit_option* jit_options,
                              void** jit_values, unsigned jit_count, CUlibraryOption* options,
                              void** values, unsigned count);
  CUresult (*LibraryGetKernel)(CUkernel* kernel, CUlibrary library, const char* name);
  CUresult (*LaunchKernel)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, CUstream stream, void** parameters, void** extra);
  CUresult (*MemHostAlloc)(void** pointer, std::size_t size_bytes, unsigned flags);
  CUresult (*MemFreeHost)(void* pointer);
  CUresult (*MemcpyHtoDAsync)(CUdeviceptr to, const void* from, std::size_t size_bytes,
                              CUstream stream);
  CUresult (*MemcpyDtoHAsync)(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
  CUresult (*StreamSynchronize)(CUstream stream);
};

// Null when there is no driver or it lacks one of the entries above.
const DriverTable* Driver();

// Makes the calling thread's context current as the CUDA runtime would: what is current stays,
// otherwise device 0's primary context. False when that fails.
bool EnsureContext();

// What the current device can do, for modelled times; defaults stand in where the driver does not
// say.
struct DeviceRates {
  double flops_per_second;
  double bytes_per_second;
};
DeviceRates CurrentDeviceRates();

}  // namespace spillway::simulator::dnn
