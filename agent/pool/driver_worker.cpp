#include "agent/pool/driver_worker.h"

#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "agent/pool/slab_wire.h"
#include "base/environment.h"
#include "base/unique_fd.h"

namespace spillway::agent {
namespace {

struct Functions {
  decltype(&cuInit) init = nullptr;
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemExportToShareableHandle) export_file = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_range = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
};

class Worker {
 public:
  // Why the driver is unusable; empty: it may be usable.
  const std::string& problem() const { return problem_; }
  void Open();
  SlabReply Make(const SlabRequest& request, base::UniqueFd* file) const;

 private:
  template <class Function>
  void Find(void* library, const char* name, Function* function);
  void FindAll(void* library);
  int AttributeOf(CUdevice_attribute attribute) const;
  CUresult Fill(CUmemGenericAllocationHandle memory, CUmemLocation node, size_t size_bytes) const;

  Functions driver_;
  CUdevice device_ = 0;
  std::string problem_;
};

std::string Refusal(const char* call, CUresult result) {
  return std::string(call) + " is refused (error " + std::to_string(static_cast<int>(result)) + ")";
}

SlabReply Refused(const std::string& why) {
  SlabReply reply;
  why.copy(reply.why, sizeof reply.why - 1);
  return reply;
}

SlabReply Failed(const char* call, CUresult result) {
  SlabReply reply = Refused(Refusal(call, result));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) reply.what = SlabReply::What::kNoMemory;
  return reply;
}

template <class Function>
void Worker::Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr && problem_.empty()) problem_ = std::string("the driver has no ") + name;
}

void Worker::FindAll(void* library) {
  Find(library, "cuInit", &driver_.init);
  Find(library, "cuDeviceGet", &driver_.device_get);
  Find(library, "cuDeviceGetAttribute", &driver_.attribute);
  Find(library, "cuMemGetAllocationGranularity", &driver_.granularity);
  Find(library, "cuMemCreate", &driver_.create);
  Find(library, "cuMemRelease", &driver_.release);
  Find(library, "cuMemExportToShareableHandle", &driver_.export_file);
  Find(library, "cuMemAddressReserve", &driver_.reserve);
  Find(library, "cuMemAddressFree", &driver_.free_range);
  Find(library, "cuMemMap", &driver_.map);
  Find(library, "cuMemUnmap", &driver_.unmap);
  Find(library, "cuMemSetAccess", &driver_.set_access);
}

void Worker::Open() {
  const char* const asked_for = getenv(environment::kDriver);
  void* const library = dlopen(asked_for != nullptr && *asked_for != 0 ? asked_for : "libcuda.so.1",
                               RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    problem_ = std::string("no driver: ") + (reason != nullptr ? reason : "");
    return;
  }
  FindAll(library);
  if (!problem_.empty()) return;
  if (const CUresult result = driver_.init(0); result != CUDA_SUCCESS) {
    problem_ = Refusal("cuInit", result);
  } else if (driver_.device_get(&device_, 0) != CUDA_SUCCESS) {
    problem_ = "the driver has no device";
  } else if (AttributeOf(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) {
    problem_ = "the driver makes no host memory for devices' addresses";
  } else if (AttributeOf(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
    problem_ = "the driver exports no memory by file";
  }
}

int Worker::AttributeOf(CUdevice_attribute attribute) const {
  int value = 0;
  return driver_.attribute(&value, attribute, device_) == CUDA_SUCCESS ? value : 0;
}

SlabReply Worker::Make(const SlabRequest& request, base::UniqueFd* file) const {
  const auto size_bytes = static_cast<size_t>(request.size_bytes);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA,
                         request.node >= 0
                             ? request.node
                             : std::max(AttributeOf(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 0)};
  size_t granule_bytes = 0;
  CUresult result =
      driver_.granularity(&granule_bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result != CUDA_SUCCESS) return Failed("cuMemGetAllocationGranularity", result);
  if (granule_bytes == 0 || size_bytes % granule_bytes != 0)
    return Refused("a slab is no multiple of the driver's granule of " +
                   std::to_string(granule_bytes) + " bytes");
  CUmemGenericAllocationHandle memory = 0;
  result = driver_.create(&memory, size_bytes, &properties, 0);
  if (result != CUDA_SUCCESS) return Failed("cuMemCreate", result);
  int exported = -1;
  result = driver_.export_file(&exported, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS) file->Reset(exported);
  const CUresult filled =
      result == CUDA_SUCCESS ? Fill(memory, properties.location, size_bytes) : CUDA_SUCCESS;
  driver_.release(memory);
  if (result != CUDA_SUCCESS) return Failed("cuMemExportToShareableHandle", result);
  if (filled != CUDA_SUCCESS) return Failed("a mapping for the processor", filled);
  SlabReply reply;
  reply.what = SlabReply::What::kMade;
  reply.node = properties.location.id;
  return reply;
}

CUresult Worker::Fill(CUmemGenericAllocationHandle memory, CUmemLocation node,
                      size_t size_bytes) const {
  CUdeviceptr base = 0;
  CUresult result = driver_.reserve(&base, size_bytes, 0, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  result = driver_.map(base, size_bytes, 0, memory, 0);
  if (result == CUDA_SUCCESS) {
    const CUmemAccessDesc access = {node, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    result = driver_.set_access(base, size_bytes, &access, 1);
    if (result == CUDA_SUCCESS) memset(reinterpret_cast<void*>(base), 0, size_bytes);
    driver_.unmap(base, size_bytes);
  }
  driver_.free_range(base, size_bytes);
  return result;
}

}  // namespace

int RunSlabWorker() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Worker worker;
  bool is_open = false;
  while (const std::optional<SlabRequest> request = ReceiveRequest(kSlabWorkerFile)) {
    if (!is_open) worker.Open();
    is_open = true;
    base::UniqueFd file;
    const SlabReply reply =
        worker.problem().empty() ? worker.Make(*request, &file) : Refused(worker.problem());
    if (request->only_try != 0) file.Reset();
    if (!SendReply(kSlabWorkerFile, reply, file.get())) return 1;
  }
  return 0;
}

}  // namespace spillway::agent
