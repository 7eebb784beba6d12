// A libcuda.so.1 that only records what the runtime requests. It notes every request for an entry
// point, and every call by its request ("cuMemcpyHtoD ver=7000 flags=2").
#include <cuda.h>

#include <cstring>
#include <string>
#include <utility>

namespace {

std::string requests;
std::string calls;

// One function per slot, so a call reveals the request that it answers.
constexpr int kSlots = 512;
std::string slot_names[kSlots];
int slots_used = 0;

template <int kSlot>
CUresult Noted() {
  calls += slot_names[kSlot] + "\n";
  return CUDA_SUCCESS;
}

using Entry = CUresult (*)();
template <int... kSlot>
constexpr auto AllSlots(std::integer_sequence<int, kSlot...>) {
  struct Table {
    Entry entries[sizeof...(kSlot)];
  };
  return Table{{Noted<kSlot>...}};
}
constexpr auto kTable = AllSlots(std::make_integer_sequence<int, kSlots>{});

CUresult CountOne(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult FirstDevice(CUdevice* device, int) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult SomeContext(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&requests);
  return CUDA_SUCCESS;
}
CUresult Pending() { return CUDA_ERROR_NOT_READY; }
CUresult Killed() { return CUDA_ERROR_ILLEGAL_ADDRESS; }
CUresult NoMemory(CUdeviceptr*, std::size_t) { return CUDA_ERROR_OUT_OF_MEMORY; }

void* Special(const char* name) {
  if (!std::strcmp(name, "cuDeviceGetCount")) return reinterpret_cast<void*>(CountOne);
  if (!std::strcmp(name, "cuDeviceGet")) return reinterpret_cast<void*>(FirstDevice);
  if (!std::strcmp(name, "cuCtxGetCurrent")) return reinterpret_cast<void*>(SomeContext);
  if (!std::strcmp(name, "cuEventQuery")) return reinterpret_cast<void*>(Pending);
  if (!std::strcmp(name, "cuCtxSynchronize")) return reinterpret_cast<void*>(Killed);
  if (!std::strcmp(name, "cuMemAlloc")) return reinterpret_cast<void*>(NoMemory);
  return nullptr;
}

}  // namespace

extern "C" {
CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  const std::string request =
      std::string(name) + " ver=" + std::to_string(version) + " flags=" + std::to_string(flags);
  requests += request + "\n";
  if (status) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  // Like an older driver, lacks this one function.
  if (!std::strcmp(name, "cuStreamGetDevice")) {
    *function = nullptr;
    if (status) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
  }
  *function = Special(name);
  if (!*function) {
    slot_names[slots_used] = request;
    *function = reinterpret_cast<void*>(kTable.entries[slots_used++]);
  }
  return CUDA_SUCCESS;
}
const char* noting_driver_requests() { return requests.c_str(); }
const char* noting_driver_calls() { return calls.c_str(); }
void noting_driver_forget_calls() { calls.clear(); }
}
