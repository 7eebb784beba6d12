// The calls of nvcc's generated code. Source of the prototypes: crt/host_runtime.h and
// crt/device_functions.h.
#include <fatbinary_section.h>

#include <vector>

#include "simulator/runtime/launch.h"
#include "simulator/runtime/registry.h"

using spillway::simulator::runtime::DefaultStream;
namespace runtime = spillway::simulator::runtime;

namespace {

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

thread_local std::vector<CallConfiguration> pending_calls;

runtime::FatBinary* Binary(void** handle) { return reinterpret_cast<runtime::FatBinary*>(handle); }

}  // namespace

SPILLWAY_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  const auto* const described = static_cast<const __fatBinC_Wrapper_t*>(wrapper);
  return reinterpret_cast<void**>(runtime::RegisterBinary(described->data));
}

SPILLWAY_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

SPILLWAY_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  runtime::ForgetBinary(Binary(handle));
}

SPILLWAY_EXPORT void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                                            const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                            int*) {
  runtime::RegisterKernel(Binary(handle), host_function, name);
}

SPILLWAY_EXPORT void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name,
                                       int, std::size_t, int, int) {
  runtime::RegisterVariable(Binary(handle), host_variable, name);
}

SPILLWAY_EXPORT void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*,
                                              const char* name, int, std::size_t, int, int) {
  runtime::RegisterManaged(Binary(handle), host_pointer, name);
}

SPILLWAY_EXPORT void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {}

SPILLWAY_EXPORT char __cudaInitModule(void**) {
  return runtime::Enter(runtime::PrepareContext, DefaultStream::kLegacy,
                        [](const runtime::DriverTable&) { return runtime::PublishManaged(); }) ==
         cudaSuccess;
}

SPILLWAY_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                                     std::size_t shared_bytes,
                                                     cudaStream_t stream) {
  pending_calls.push_back({grid, block, shared_bytes, stream});
  return 0;
}

SPILLWAY_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                                       std::size_t* shared_bytes, void* stream) {
  if (pending_calls.empty()) return runtime::Record(cudaErrorMissingConfiguration);
  const CallConfiguration call = pending_calls.back();
  pending_calls.pop_back();
  *grid = call.grid;
  *block = call.block;
  *shared_bytes = call.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = call.stream;
  return cudaSuccess;
}

// Generated code keeps the answer for ever, so it is independent of the driver's state: this
// library's own record, which each launch resolves.
SPILLWAY_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  runtime::Kernel* const found = runtime::FindKernel(host_function);
  if (!found) return runtime::Record(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return cudaSuccess;
}

SPILLWAY_TWIN_API(__cudaLaunchKernel, _ptsz,
                  (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream),
                  Launch(driver, kernel, grid, block, arguments, shared_bytes, stream))
