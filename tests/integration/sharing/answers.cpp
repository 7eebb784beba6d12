// Makes every query about memory and prints the answers, one a line: `question: answer`. Addresses
// are printed as offsets from the allocation.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/nvml_abi.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

void Say(const std::string& question, const std::string& answer) {
  std::printf("%s: %s\n", question.c_str(), answer.c_str());
}
void Say(const std::string& question, CUresult result) {
  const char* name = "?";
  cuGetErrorName(result, &name);
  Say(question, std::string(name));
}
void Say(const std::string& question, CUresult result, long long value) {
  if (result == CUDA_SUCCESS)
    Say(question, std::to_string(value));
  else
    Say(question, result);
}

struct Attribute {
  const char* name;
  CUpointer_attribute which;
  size_t bytes;
  bool is_address;
};
constexpr Attribute kAttributes[] = {
    {"MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4, false},
    {"DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8, true},
    {"HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, 8, true},
    {"SYNC_MEMOPS", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4, false},
    {"IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED, 4, false},
    {"DEVICE_ORDINAL", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4, false},
    {"IS_LEGACY_CUDA_IPC_CAPABLE", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4, false},
    {"RANGE_START_ADDR", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8, true},
    {"RANGE_SIZE", CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8, false},
    {"MAPPED", CU_POINTER_ATTRIBUTE_MAPPED, 1, false},
    {"ALLOWED_HANDLE_TYPES", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8, false},
    {"IS_GPU_DIRECT_RDMA_CAPABLE", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4, false},
    {"ACCESS_FLAGS", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4, false},
    {"MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8, false},
    {"MAPPING_SIZE", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 8, false},
    {"MAPPING_BASE_ADDR", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 8, true},
};

std::string Shown(const Attribute& attribute, const unsigned char* bytes, CUdeviceptr base) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, attribute.bytes);
  if (!attribute.is_address || value == 0) return std::to_string(value);
  return "base+" + std::to_string(static_cast<long long>(value - base));
}

void AskAttributes(const std::string& what, CUdeviceptr base, CUdeviceptr address,
                   CUcontext current) {
  for (const Attribute& attribute : kAttributes) {
    alignas(8) unsigned char one[8] = {}, bulk[8] = {};
    const CUresult result = cuPointerGetAttribute(one, attribute.which, address);
    Say(what + " " + attribute.name,
        result == CUDA_SUCCESS ? Shown(attribute, one, base) : "refused");
    CUpointer_attribute which = attribute.which;
    void* place = bulk;
    const CUresult in_bulk = cuPointerGetAttributes(1, &which, &place, address);
    Say(what + " " + attribute.name + " in bulk",
        in_bulk == CUDA_SUCCESS ? Shown(attribute, bulk, base) : "refused");
  }
  CUcontext context = nullptr;
  cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address);
  Say(what + " CONTEXT is the current one", std::to_string(context == current));
  std::uint64_t id_here = 0, id_at_base = 0;
  cuPointerGetAttribute(&id_here, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
  cuPointerGetAttribute(&id_at_base, CU_POINTER_ATTRIBUTE_BUFFER_ID, base);
  Say(what + " BUFFER_ID is the allocation's",
      std::to_string(id_here != 0 && id_here == id_at_base));
}

void AskRange(const std::string& what, CUdeviceptr base, CUdeviceptr address) {
  CUdeviceptr start = 0;
  size_t bytes = 0;
  const CUresult result = cuMemGetAddressRange(&start, &bytes, address);
  Say(what + " range base", result, static_cast<long long>(start - base));
  Say(what + " range size", result, static_cast<long long>(bytes));
}

void AskAll(const std::string& what, CUdeviceptr base, size_t bytes, CUcontext context) {
  for (const size_t offset : {size_t{0}, bytes / 2 + 8, bytes - 1}) {
    const std::string where = what + "+" + std::to_string(offset);
    AskAttributes(where, base, base + offset, context);
    AskRange(where, base, base + offset);
  }
}

// T8: null output pointers, before the driver is initialised and without a context.
void AskWithoutPlaces(const std::string& when) {
  size_t bytes = 0;
  int number = 0;
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* place = &number;
  Say(when + " cuMemGetInfo(free, total)", cuMemGetInfo(&bytes, &bytes));
  Say(when + " cuMemGetInfo(null, total)", cuMemGetInfo(nullptr, &bytes));
  Say(when + " cuMemGetInfo(free, null)", cuMemGetInfo(&bytes, nullptr));
  Say(when + " cuMemGetInfo(null, null)", cuMemGetInfo(nullptr, nullptr));
  Say(when + " cuDeviceTotalMem(bytes)", cuDeviceTotalMem(&bytes, 0));
  Say(when + " cuDeviceTotalMem(null)", cuDeviceTotalMem(nullptr, 0));
  Say(when + " cuDeviceTotalMem(no device)", cuDeviceTotalMem(&bytes, 99));
  Say(when + " cuMemAlloc(null)", cuMemAlloc(nullptr, 4096));
  Say(when + " cuMemAlloc(0 bytes)", cuMemAlloc(reinterpret_cast<CUdeviceptr*>(&bytes), 0));
  Say(when + " cuMemFree(0)", cuMemFree(0));
  Say(when + " cuMemFree(64)", cuMemFree(64));
  Say(when + " cuMemGetAddressRange(64)", cuMemGetAddressRange(nullptr, nullptr, 64));
  Say(when + " cuPointerGetAttribute(null)", cuPointerGetAttribute(nullptr, which, 64));
  Say(when + " cuPointerGetAttribute(64)", cuPointerGetAttribute(&number, which, 64));
  Say(when + " cuPointerGetAttributes(none)", cuPointerGetAttributes(0, &which, &place, 64));
  Say(when + " cuPointerGetAttributes(null)", cuPointerGetAttributes(1, nullptr, &place, 64));
  Say(when + " cuPointerGetAttributes(64)", cuPointerGetAttributes(1, &which, &place, 64));
  Say(when + " cuIpcGetMemHandle(null)", cuIpcGetMemHandle(nullptr, 64));
  Say(when + " cuIpcCloseMemHandle(64)", cuIpcCloseMemHandle(64));
  Say(when + " cuMemCreate(null)", cuMemCreate(nullptr, 2 * kMiB, nullptr, 0));
  Say(when + " cuMemRelease(64)", cuMemRelease(64));
  Say(when + " cuMemUnmap(64)", cuMemUnmap(64, 4096));
  Say(when + " cuMemRetainAllocationHandle(64)",
      cuMemRetainAllocationHandle(reinterpret_cast<CUmemGenericAllocationHandle*>(&bytes),
                                  reinterpret_cast<void*>(64)));
}

template <typename... Arguments>
int Nvml(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  const auto function =
      library ? reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name)) : nullptr;
  return function ? function(arguments...) : -1;
}

void AskNvml(const std::string& when) {
  using namespace spillway::nvml;
  Nvml("nvmlInit_v2");
  Device device = nullptr;
  Nvml("nvmlDeviceGetHandleByIndex_v2", 0u, &device);
  Memory memory{};
  Say(when + " NVML memory", std::to_string(Nvml("nvmlDeviceGetMemoryInfo", device, &memory)));
  Say(when + " NVML total", std::to_string(memory.total));
  Say(when + " NVML used", std::to_string(memory.used));
  Say(when + " NVML free and used make total",
      std::to_string(memory.free + memory.used == memory.total));
  MemoryV2 second{};
  second.version = kMemoryVersion2;
  Nvml("nvmlDeviceGetMemoryInfo_v2", device, &second);
  Say(when + " NVML second form agrees",
      std::to_string(second.total == memory.total && second.free == memory.free));
  Say(when + " NVML without a place",
      std::to_string(Nvml("nvmlDeviceGetMemoryInfo", device, static_cast<Memory*>(nullptr))));
  Process process{};
  unsigned count = 1;
  Say(when + " NVML processes",
      std::to_string(Nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, &process)));
  Say(when + " NVML process count", std::to_string(count));
  Say(when + " NVML process is this one",
      std::to_string(process.pid == static_cast<unsigned>(getpid())));
  Say(when + " NVML process uses what is used", std::to_string(process.used_bytes == memory.used));
  size_t free_bytes = 0, total_bytes = 0;
  if (cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) return;
  Say(when + " NVML and cuMemGetInfo agree",
      std::to_string(free_bytes == memory.free && total_bytes == memory.total));
}

void AskSizes(const std::string& when) {
  size_t free_bytes = 0, total_bytes = 0, device_bytes = 0;
  Say(when + " cuMemGetInfo", cuMemGetInfo(&free_bytes, &total_bytes));
  Say(when + " total memory", std::to_string(total_bytes));
  Say(when + " used memory", std::to_string(total_bytes - free_bytes));
  cuDeviceTotalMem(&device_bytes, 0);
  Say(when + " cuDeviceTotalMem agrees", std::to_string(device_bytes == total_bytes));
}

}  // namespace

int main() {
  AskWithoutPlaces("before cuInit");
  cuInit(0);
  AskWithoutPlaces("without a context");
  CUcontext context = nullptr;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  AskSizes("at first");
  AskNvml("at first");
  AskWithoutPlaces("with a context");

  CUdeviceptr large = 0, small = 0, others[4] = {};
  cuMemAlloc(&large, 16 * kMiB);
  cuMemAlloc(&small, 4096);
  AskSizes("with 16 MiB and 4 KiB");
  AskNvml("with 16 MiB and 4 KiB");
  AskAll("16 MiB", large, 16 * kMiB, context);
  AskAll("4 KiB", small, 4096, context);
  AskRange("one past 16 MiB", large, large + 16 * kMiB);

  // With a budget of 64 MiB these evict the first one.
  cuMemsetD32(large, 7, 4 * kMiB);
  for (CUdeviceptr& other : others) {
    cuMemAlloc(&other, 16 * kMiB);
    cuMemsetD32(other, 1, 4 * kMiB);
  }
  cuCtxSynchronize();
  AskAll("16 MiB when others came", large, 16 * kMiB, context);
  AskSizes("with 80 MiB");
  AskNvml("with 80 MiB");

  const unsigned on = 1;
  Say("set SYNC_MEMOPS", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, large));

  cuMemFree(large);
  AskAttributes("freed", large, large, context);
  AskRange("freed", large, large);
  Say("freed again", cuMemFree(large));
  return 0;
}
