// cuGetProcAddress: the exported symbol for the requested name, version and stream flavour.
//
// entries.py makes the table from cudaTypedefs.h: per name, the CUDA versions that introduced its
// forms. The answer is the newest form that is not newer than the request, so a program built for
// CUDA 11 gets CUDA 11's interface.
#include <cstring>
#include <string>

#include "simulator/driver/abi.h"
#include "simulator/driver/api/entries.h"

namespace spillway::simulator {
namespace {

void* Find(const char* name, int version, bool per_thread, bool& newer_exists) {
  void* found = nullptr;
  int found_version = -1;
  newer_exists = false;
  const std::size_t count = EntryCount();
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& entry = Entries()[i];
    if (entry.per_thread != per_thread || std::strcmp(entry.name, name) != 0) continue;
    if (entry.version > version)
      newer_exists = true;
    else if (entry.version > found_version) {
      found = entry.function;
      found_version = entry.version;
    }
  }
  return found;
}

CUdriverProcAddressQueryResult Look(const char* name, void** function, int version,
                                    cuuint64_t flags) {
  bool newer_exists = false;
  bool newer_plain_exists = false;
  *function = nullptr;
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
    *function = Find(name, version, true, newer_exists);
  }
  if (*function == nullptr) *function = Find(name, version, false, newer_plain_exists);
  if (*function != nullptr) return CU_GET_PROC_ADDRESS_SUCCESS;
  return newer_exists || newer_plain_exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

constexpr int kNewestVersion = 13000;

bool ValidFlags(cuuint64_t flags) {
  return flags == CU_GET_PROC_ADDRESS_DEFAULT || flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM ||
         flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuGetProcAddress_v2)
(const char* name, void** function, int version, cuuint64_t flags,
 CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr || !ValidFlags(flags) || version > kNewestVersion) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUdriverProcAddressQueryResult result = Look(name, function, version, flags);
  if (status != nullptr) *status = result;
  // With a status pointer an unknown name is a success: *status reports it.
  return *function != nullptr || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIM_API(cuGetProcAddress)(const char* name, void** function, int version, cuuint64_t flags) {
  if (name == nullptr || function == nullptr || !ValidFlags(flags) || version > kNewestVersion) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Look(name, function, version, flags);
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
