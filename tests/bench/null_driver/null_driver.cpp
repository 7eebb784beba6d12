// A libcuda.so.1 for measuring hooks: one device of 1 TiB of mere address space, whose work
// completes at once.
//
// Any thread; nothing waits, locks or touches memory. Every kernel has 20 parameters of 8 bytes. A
// launch keeps its thread busy for NULL_DRIVER_LAUNCH_NS (default 0). Functions not defined here
// return NOT_SUPPORTED (null_driver_rest.cpp).
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdlib>

#include "interposer/driver/cuda_abi.h"

#define NULL_DRIVER extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kCapacityBytes = size_t{1} << 40;
constexpr size_t kParameters = 20;

std::atomic<uintptr_t> next_token{0x1000};
std::atomic<int> plain_allocations{0};
std::atomic<long> working_calls{0};

// A real driver would do work for the call.
CUresult Worked() {
  working_calls.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

long NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

long LaunchNs() {
  const char* const text = getenv("NULL_DRIVER_LAUNCH_NS");
  return text ? atol(text) : 0;
}
const long launch_ns = LaunchNs();

template <typename Handle>
CUresult NewToken(Handle* handle) {
  *handle = reinterpret_cast<Handle>(next_token.fetch_add(16));
  return CUDA_SUCCESS;
}

CUresult NewAddresses(CUdeviceptr* address, size_t size_bytes) {
  Worked();
  void* const space =
      mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(space);
  return CUDA_SUCCESS;
}

template <typename T>
CUresult Give(T* where, T value) {
  if (where != nullptr) *where = value;
  return CUDA_SUCCESS;
}

CUcontext TheContext() { return reinterpret_cast<CUcontext>(0x10); }

int AttributeValue(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

NULL_DRIVER CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
NULL_DRIVER CUresult cuDriverGetVersion(int* version) { return Give(version, 13000); }
NULL_DRIVER CUresult cuDeviceGet(CUdevice* device, int) { return Give(device, 0); }
NULL_DRIVER CUresult cuDeviceGetCount(int* count) { return Give(count, 1); }
NULL_DRIVER CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  return Give(bytes, kCapacityBytes);
}
NULL_DRIVER CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  return Give(value, AttributeValue(attribute));
}
NULL_DRIVER CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  Give(free_bytes, kCapacityBytes);
  return Give(total_bytes, kCapacityBytes);
}

NULL_DRIVER CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  return Give(context, TheContext());
}
NULL_DRIVER CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
NULL_DRIVER CUresult cuCtxGetCurrent(CUcontext* context) { return Give(context, TheContext()); }
NULL_DRIVER CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
NULL_DRIVER CUresult cuCtxPopCurrent_v2(CUcontext* context) { return Give(context, TheContext()); }
NULL_DRIVER CUresult cuCtxGetDevice(CUdevice* device) { return Give(device, 0); }
NULL_DRIVER CUresult cuCtxGetId(CUcontext, unsigned long long* id) { return Give(id, 1ull); }
NULL_DRIVER CUresult cuCtxSynchronize() { return Worked(); }
NULL_DRIVER CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Give(least, 0);
  return Give(greatest, 0);
}

NULL_DRIVER CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  plain_allocations.fetch_add(1);
  return NewAddresses(address, bytes);
}
NULL_DRIVER CUresult cuMemFree_v2(CUdeviceptr) { return Worked(); }
NULL_DRIVER CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return NewAddresses(reinterpret_cast<CUdeviceptr*>(memory), bytes);
}
NULL_DRIVER CUresult cuMemFreeHost(void*) { return Worked(); }
NULL_DRIVER CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size_bytes, size_t,
                                         CUdeviceptr, unsigned long long) {
  return NewAddresses(address, size_bytes);
}
NULL_DRIVER CUresult cuMemAddressFree(CUdeviceptr, size_t) { return Worked(); }
NULL_DRIVER CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t,
                                 const CUmemAllocationProp*, unsigned long long) {
  return Give<CUmemGenericAllocationHandle>(handle, next_token.fetch_add(16));
}
NULL_DRIVER CUresult cuMemRelease(CUmemGenericAllocationHandle) { return Worked(); }
NULL_DRIVER CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                              unsigned long long) {
  return Worked();
}
NULL_DRIVER CUresult cuMemUnmap(CUdeviceptr, size_t) { return Worked(); }
NULL_DRIVER CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return Worked();
}
NULL_DRIVER CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                                   CUmemAllocationGranularity_flags) {
  return Give(bytes, size_t{2} << 20);
}

NULL_DRIVER CUresult cuStreamCreate(CUstream* stream, unsigned) { return NewToken(stream); }
NULL_DRIVER CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int) {
  return NewToken(stream);
}
NULL_DRIVER CUresult cuStreamDestroy_v2(CUstream) { return CUDA_SUCCESS; }
NULL_DRIVER CUresult cuStreamSynchronize(CUstream) { return Worked(); }
NULL_DRIVER CUresult cuStreamQuery(CUstream) { return Worked(); }
NULL_DRIVER CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return Worked(); }
NULL_DRIVER CUresult cuStreamGetFlags(CUstream, unsigned* flags) { return Give(flags, 0u); }
NULL_DRIVER CUresult cuStreamGetCtx(CUstream, CUcontext* context) {
  return Give(context, TheContext());
}
NULL_DRIVER CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  return Give(status, CU_STREAM_CAPTURE_STATUS_NONE);
}
NULL_DRIVER CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) {
  return CUDA_SUCCESS;
}
NULL_DRIVER CUresult cuEventCreate(CUevent* event, unsigned) { return NewToken(event); }
NULL_DRIVER CUresult cuEventDestroy_v2(CUevent) { return Worked(); }
NULL_DRIVER CUresult cuEventRecord(CUevent, CUstream) { return Worked(); }
NULL_DRIVER CUresult cuEventQuery(CUevent) { return Worked(); }
NULL_DRIVER CUresult cuEventSynchronize(CUevent) { return Worked(); }

// The same time between any two events.
NULL_DRIVER CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  return Give(milliseconds, 0.25f);
}

NULL_DRIVER CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return Give(function, reinterpret_cast<CUfunction>(kernel));
}
NULL_DRIVER CUresult cuFuncGetParamInfo(CUfunction, size_t index, size_t* offset,
                                        size_t* size_bytes) {
  if (index >= kParameters) return CUDA_ERROR_INVALID_VALUE;
  Give(offset, index * sizeof(CUdeviceptr));
  return Give(size_bytes, sizeof(CUdeviceptr));
}
NULL_DRIVER CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    unsigned, unsigned, CUstream, void**, void**) {
  asm volatile("");  // a call that the compiler must make
  if (launch_ns == 0) return CUDA_SUCCESS;
  for (const long end_ns = NowNs() + launch_ns; NowNs() < end_ns;) {
  }
  return CUDA_SUCCESS;
}

NULL_DRIVER CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset,
                                          size_t* size_bytes) {
  return cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset, size_bytes);
}

// The launch of a program without the preload library, under a name that no entry point knows.
NULL_DRIVER void* null_driver_launch() { return reinterpret_cast<void*>(&cuLaunchKernel); }

// Calls so far, without launches and plain queries.
NULL_DRIVER long null_driver_working_calls() { return working_calls.load(); }

// Allocations past the preload library's own memory.
NULL_DRIVER int null_driver_plain_allocations() { return plain_allocations.load(); }
