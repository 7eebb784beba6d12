#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {
namespace {

static_assert(static_cast<int>(cudaDriverEntryPointSuccess) ==
              static_cast<int>(CU_GET_PROC_ADDRESS_SUCCESS));
static_assert(static_cast<int>(cudaDriverEntryPointSymbolNotFound) ==
              static_cast<int>(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));

// Flag 0 means the default stream that the program was compiled with.
cuuint64_t LookupFlags(unsigned long long flags, DefaultStream compiled_with) {
  if (flags != cudaEnableDefault) return flags;
  return compiled_with == DefaultStream::kPerThread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                                    : CU_GET_PROC_ADDRESS_DEFAULT;
}

cudaError_t EntryPoint(const char* symbol, void** function, unsigned version,
                       unsigned long long flags, cudaDriverEntryPointQueryResult* status,
                       DefaultStream compiled_with) {
  if (!symbol || !*symbol || !function) return cudaErrorInvalidValue;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  *function = nullptr;
  const CUresult result = DriverLookup()(symbol, function, static_cast<int>(version),
                                         LookupFlags(flags, compiled_with), &found);
  if (status) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  if (result == CUDA_ERROR_NOT_FOUND) return status ? cudaSuccess : cudaErrorSymbolNotFound;
  return ToRuntime(result);
}

}  // namespace
}  // namespace spillway::simulator::runtime

#define SPILLWAY_ENTRY_POINT(suffix, default_stream)                                               \
  SPILLWAY_DEVICE_API(cudaGetDriverEntryPoint##suffix,                                             \
                      (const char* symbol, void** function, unsigned long long flags,              \
                       cudaDriverEntryPointQueryResult* status),                                   \
                      EntryPoint(symbol, function, CUDART_VERSION, flags, status, default_stream)) \
  SPILLWAY_DEVICE_API(cudaGetDriverEntryPointByVersion##suffix,                                    \
                      (const char* symbol, void** function, unsigned version,                      \
                       unsigned long long flags, cudaDriverEntryPointQueryResult* status),         \
                      EntryPoint(symbol, function, version, flags, status, default_stream))

SPILLWAY_ENTRY_POINT(, DefaultStream::kLegacy)
SPILLWAY_ENTRY_POINT(_ptsz, DefaultStream::kPerThread)
