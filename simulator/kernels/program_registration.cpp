// Registers kernels of a `simkernels --host` program with the CUDA runtime, as nvcc's code does.
#include <cuda_runtime_api.h>
#include <fatbinary_section.h>

#include "simulator/kernels/grid_launch.h"
#include "simulator/kernels/image.h"
#include "simulator/kernels/module_elf.h"

extern "C" {
const spillway::simulator::Image* spillway_sim_image();
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* name, int thread_limit, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void** handle, char* host_variable, char* device_address, const char* name,
                       int external, std::size_t size_bytes, int constant, int global);

// In the order of the image's kernels.
extern const char* const __start_spillway_functions[] __attribute__((weak, visibility("hidden")));
}

namespace {

dim3 Dim(const std::uint32_t (&sizes)[3]) { return {sizes[0], sizes[1], sizes[2]}; }

void LaunchOnDevice(const spillway::simulator::KernelDescription& kernel,
                    const spillway::simulator::executor::GridConfiguration& configuration,
                    void** arguments) {
  const auto& image = *spillway_sim_image();
  std::uint32_t i = 0;
  while (i + 1 < image.kernel_count && image.kernels[i].body != kernel.body) ++i;
  static_cast<void>(cudaLaunchKernel(
      __start_spillway_functions[i], Dim(configuration.grid), Dim(configuration.block), arguments,
      configuration.shared_bytes, static_cast<cudaStream_t>(configuration.stream)));
}

// Before every static initialiser of the program: one may launch a kernel.
__attribute__((constructor(101))) void RegisterProgram() {
  const auto& image = *spillway_sim_image();
  static const __fatBinC_Wrapper_t wrapper = {
      FATBINC_MAGIC, FATBINC_VERSION,
      static_cast<const unsigned long long*>(spillway::simulator::ModuleElfOf(image)), nullptr};
  void** const handle = __cudaRegisterFatBinary(const_cast<__fatBinC_Wrapper_t*>(&wrapper));
  for (std::uint32_t i = 0; i < image.kernel_count; ++i) {
    __cudaRegisterFunction(handle, __start_spillway_functions[i], nullptr, image.kernels[i].name,
                           -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  for (std::uint32_t i = 0; i < image.global_count; ++i) {
    const auto& global = image.globals[i];
    __cudaRegisterVar(handle, static_cast<char*>(global.address), nullptr, global.name, 0,
                      global.size_bytes, 0, 0);
  }
  __cudaRegisterFatBinaryEnd(handle);
  spillway::simulator::executor::SetHostLaunch(LaunchOnDevice);
}

}  // namespace
