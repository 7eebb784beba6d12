// A library with a kernel: loads it, launches it, unloads it. Built twice, with kernels of
// different parameters.
#include <cuda.h>

#include <cstdint>

#include "simulator/kernels/image.h"

namespace {

using namespace spillway::simulator;

void Run(const LaunchShape&, void* const* arguments) {
  const auto address = *static_cast<const std::uint64_t*>(arguments[PLUGIN_ADDRESS_AT]);
  *reinterpret_cast<std::uint32_t*>(address) +=
      *static_cast<const std::uint32_t*>(arguments[1 - PLUGIN_ADDRESS_AT]);
}

constexpr KernelParameter kParameters[] = {{0, PLUGIN_ADDRESS_AT == 0 ? 8u : 4u},
                                           {8, PLUGIN_ADDRESS_AT == 0 ? 4u : 8u}};
constexpr KernelEntry kKernels[] = {{"plugin", Run, nullptr, 2, kParameters}};
constexpr Image kImage = {
    {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, kImageVersion, 1, kKernels, 0, nullptr};

}  // namespace

extern "C" CUresult RunPluginKernel(CUdeviceptr address, std::uint32_t word) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUresult result = cuModuleLoadData(&module, &kImage);
  if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&function, module, "plugin");
  void* parameters[2];
  parameters[PLUGIN_ADDRESS_AT] = &address;
  parameters[1 - PLUGIN_ADDRESS_AT] = &word;
  if (result == CUDA_SUCCESS)
    result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  return result == CUDA_SUCCESS ? cuModuleUnload(module) : result;
}
