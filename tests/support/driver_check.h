// Turns a failed driver call into an exception that names the call and the error.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>

namespace spillway::support {

inline void CheckDriver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  throw std::runtime_error(std::string(call) + ": " +
                           (name != nullptr ? name : std::to_string(result)));
}

}  // namespace spillway::support

#define SPILLWAY_DRIVER_CALL(call) ::spillway::support::CheckDriver((call), #call)
