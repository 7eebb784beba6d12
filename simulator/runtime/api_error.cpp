#include "simulator/runtime/entry.h"
#include "simulator/runtime/error_names.h"

namespace runtime = spillway::simulator::runtime;

SPILLWAY_EXPORT cudaError_t cudaGetLastError() { return runtime::TakeLastError(); }
SPILLWAY_EXPORT cudaError_t cudaPeekAtLastError() { return runtime::PeekLastError(); }

SPILLWAY_EXPORT const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SPILLWAY_NAME(name, text) \
  case name:                      \
    return #name;
    SPILLWAY_RUNTIME_ERRORS(SPILLWAY_NAME)
#undef SPILLWAY_NAME
    default:
      return "unrecognized error code";
  }
}

SPILLWAY_EXPORT const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define SPILLWAY_TEXT(name, text) \
  case name:                      \
    return text;
    SPILLWAY_RUNTIME_ERRORS(SPILLWAY_TEXT)
#undef SPILLWAY_TEXT
    default:
      return "unrecognized error code";
  }
}

SPILLWAY_EXPORT cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return runtime::Record(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// As documented, the answer without a driver is 0 and no error.
SPILLWAY_EXPORT cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return runtime::Record(cudaErrorInvalidValue);
  *version = 0;
  if (!runtime::LoadDriver()) return cudaSuccess;
  return runtime::Record(runtime::ToRuntime(runtime::Driver().cuDriverGetVersion(version)));
}
