// The frame of every runtime call: find the driver, make a context current, remember the error.
//
// Invariants
//  1. The last error and the current device belong to the calling thread.
//  2. The first call that needs a primary context retains it. A context that the program made
//     current by the driver API stays current.
//  3. Driver and runtime error numbers are the same. A call that needs a driver answers
//     cudaErrorInsufficientDriver without one; cudaDriverGetVersion answers 0.
//  4. An error that killed the context stays the last error; cudaGetLastError clears other errors.
#pragma once

#include <cuda_runtime_api.h>

#include "simulator/runtime/driver_table.h"

namespace spillway::simulator::runtime {

inline cudaError_t ToRuntime(CUresult result) { return static_cast<cudaError_t>(result); }
inline cudaError_t ToRuntime(cudaError_t error) { return error; }

cudaError_t Record(cudaError_t error);
cudaError_t PeekLastError();
cudaError_t TakeLastError();

cudaError_t PrepareDriver();
cudaError_t PrepareContext();

// By cudaSetDevice or the current context.
cudaError_t CurrentDevice(int* device);
cudaError_t SelectDevice(int device);
cudaError_t PrimaryContext(int device, CUcontext* context);
cudaError_t ResetDevice();

template <typename Call>
cudaError_t Enter(cudaError_t (*prepare)(), DefaultStream default_stream, Call&& call) {
  const cudaError_t ready = prepare();
  if (ready != cudaSuccess) return Record(ready);
  return Record(ToRuntime(call(Driver(default_stream))));
}

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace spillway::simulator::runtime

#define SPILLWAY_EXPORT extern "C" __attribute__((visibility("default")))

// Its work is one expression over `driver`. _DEVICE needs no context. _TWIN exists a second time
// with `suffix`, for the per-thread default stream.
#define SPILLWAY_DEVICE_API(name, parameters, expression)                                 \
  SPILLWAY_EXPORT cudaError_t name parameters {                                           \
    using namespace spillway::simulator::runtime;                                         \
    return Enter(PrepareDriver, DefaultStream::kLegacy,                                   \
                 [&]([[maybe_unused]] const DriverTable& driver) { return expression; }); \
  }
#define SPILLWAY_API_ON(name, default_stream, parameters, expression)                     \
  SPILLWAY_EXPORT cudaError_t name parameters {                                           \
    using namespace spillway::simulator::runtime;                                         \
    return Enter(PrepareContext, default_stream,                                          \
                 [&]([[maybe_unused]] const DriverTable& driver) { return expression; }); \
  }
#define SPILLWAY_API(name, parameters, expression) \
  SPILLWAY_API_ON(name, DefaultStream::kLegacy, parameters, expression)
#define SPILLWAY_TWIN_API(name, suffix, parameters, expression)         \
  SPILLWAY_API_ON(name, DefaultStream::kLegacy, parameters, expression) \
  SPILLWAY_API_ON(name##suffix, DefaultStream::kPerThread, parameters, expression)
