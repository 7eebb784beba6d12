// Fat binaries, kernels and device variables, which nvcc's code registers before main().
//
// Registered objects live as long as the process, even after their library was unloaded.
//
// Invariants
//  1. The first use of a kernel or variable loads its fat binary (cuLibraryLoadData).
//  2. A kernel's keys are its host function, its __cudaGetKernel handle and its CUkernel.
//  3. nvcc makes some names unique per file (anonymous namespaces). Lookups try g++'s form first,
//     which kernel plug-ins export, then the registered name.
#pragma once

#include <string>
#include <vector>

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

struct FatBinary {
  const void* image;
  CUlibrary library = nullptr;
  std::vector<const void*> kernel_keys = {};
  std::vector<const void*> variable_keys = {};
};

struct Kernel {
  FatBinary* binary;
  std::string name;
  CUkernel handle = nullptr;
};

struct Variable {
  FatBinary* binary;
  std::string name;
  void** host_pointer = nullptr;  // managed variables: the program reads the device address here
  CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
};

FatBinary* RegisterBinary(const void* image);
void RegisterKernel(FatBinary* binary, const void* host_function, const char* name);
void RegisterVariable(FatBinary* binary, const void* host_variable, const char* name);
void RegisterManaged(FatBinary* binary, void** host_pointer, const char* name);
void ForgetBinary(FatBinary* binary);

// `key` is a host function, a __cudaGetKernel handle or a CUkernel. Null when unknown.
Kernel* FindKernel(const void* key);
// cudaErrorInvalidDeviceFunction when unknown.
cudaError_t ResolveKernel(const void* key, CUkernel* handle);
cudaError_t ResolveVariable(const void* symbol, CUdeviceptr* address, std::size_t* size_bytes);
cudaError_t PublishManaged();

}  // namespace spillway::simulator::runtime
