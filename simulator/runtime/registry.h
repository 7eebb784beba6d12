// The fat binaries, kernels and device variables that nvcc's generated code registers before
// main().
//
// Called by: registration entry points (static initialisers and dlopen, one thread at a time in
// practice) and every launch or symbol call, on any thread; synchronises itself. Ownership:
// registered things live as long as the process, also after their program part was unloaded: at
// exit the driver may already be gone, so nothing is given back to it.
//
// Invariants
//  1. A fat binary is loaded (cuLibraryLoadData) at the first use of one of its kernels or
//  variables, not before.
//  2. A kernel is known by its host function, by the handle that __cudaGetKernel gave, and by its
//  CUkernel.
//  3. Names that nvcc makes unique per file (anonymous namespaces) are tried in the form g++ gives
//  them, which is
//     what a kernel plug-in exports, and then as registered.
#pragma once

#include <string>

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

struct FatBinary {
  const void* image;
  CUlibrary library = nullptr;
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

// The handle behind a host function, a __cudaGetKernel handle or a CUkernel; null when unknown.
Kernel* FindKernel(const void* key);
// The kernel's driver handle, loading its fat binary when needed. cudaErrorInvalidDeviceFunction
// when unknown.
cudaError_t ResolveKernel(const void* key, CUkernel* handle);
// Device address and size of a registered variable. cudaErrorInvalidSymbol when unknown.
cudaError_t ResolveVariable(const void* symbol, CUdeviceptr* address, std::size_t* size_bytes);
// Sets the host pointers of every managed variable.
cudaError_t PublishManaged();

}  // namespace spillway::simulator::runtime
