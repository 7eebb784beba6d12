// A driver that makes, exports and maps host memory, with the fault that $DIFFICULT names. Its
// memory is "dirty", it "refuses" to export, has "no memory", or "hangs" when memory is requested.
#include <cuda.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

bool Is(const char* way) {
  const char* const chosen = getenv("DIFFICULT");
  return chosen != nullptr && strcmp(chosen, way) == 0;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID ? 0 : 1;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  return *bytes = size_t{2} << 20, CUDA_SUCCESS;
}

// A handle is the number of a file in memory.
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  if (Is("no memory")) return CUDA_ERROR_OUT_OF_MEMORY;
  while (Is("hangs")) pause();
  const int file = memfd_create("difficult", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (Is("dirty")) {
    void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(place, 0xdd, bytes);
    munmap(place, bytes);
  }
  return *handle = static_cast<CUmemGenericAllocationHandle>(file), CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return close(static_cast<int>(handle)), CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType, unsigned long long) {
  if (Is("refuses")) return CUDA_ERROR_NOT_PERMITTED;
  *static_cast<int*>(file) = fcntl(static_cast<int>(handle), F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* base, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  *base = reinterpret_cast<CUdeviceptr>(
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes) {
  return munmap(reinterpret_cast<void*>(base), bytes), CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
       static_cast<int>(handle), 0);
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr base, size_t bytes) {
  mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
       0);
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr base, size_t bytes, const CUmemAccessDesc*, size_t) {
  return mprotect(reinterpret_cast<void*>(base), bytes, PROT_READ | PROT_WRITE), CUDA_SUCCESS;
}

}  // extern "C"
