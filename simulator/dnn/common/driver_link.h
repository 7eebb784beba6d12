// The simulated libraries' way to the driver: the same calls as in the real ones.
//
// Invariants
//  1. The only ways to the driver are dlopen("libcuda.so.1"), dlsym("cuGetProcAddress_v2") and
//     cuGetProcAddress.
//  2. Device memory is allocated for cuFFT's work areas, cuSOLVER's factors and cublasXt's tiles
//     alone. Results in host memory go through one small pinned buffer, after a wait for the
//     stream.
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
  CUresult (*MemAlloc)(CUdeviceptr* address, std::size_t size_bytes);
  CUresult (*MemFree)(CUdeviceptr address);
  CUresult (*MemHostAlloc)(void** pointer, std::size_t size_bytes, unsigned flags);
  CUresult (*MemFreeHost)(void* pointer);
  CUresult (*MemcpyHtoDAsync)(CUdeviceptr to, const void* from, std::size_t size_bytes,
                              CUstream stream);
  CUresult (*MemcpyDtoHAsync)(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
  CUresult (*Memcpy2DAsync)(const CUDA_MEMCPY2D* copy, CUstream stream);
  CUresult (*StreamSynchronize)(CUstream stream);
};

const DriverTable* Driver();

// As in the CUDA runtime: a current context stays, else device 0's primary one is made current.
bool EnsureContext();

// Of the current device. Defaults replace values that the driver lacks.
struct DeviceRates {
  double flops_per_second;
  double bytes_per_second;
};
DeviceRates CurrentDeviceRates();

}  // namespace spillway::simulator::dnn
