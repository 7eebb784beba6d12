#include "simulator/driver/calls/capture.h"
#include "simulator/driver/calls/node_work.h"

namespace spillway::simulator {
namespace {

CUresult Launch(const void* handle, const LaunchShape& shape, CUstream stream_handle,
                void* const* parameters, void* const* extra, Blocks blocks = Blocks::kAnyNumber) {
  return WithContext([&](Call& call) {
    KernelLaunch launch = DescribeLaunch(call, handle, shape, parameters, extra, blocks);
    Stream& stream = call.StreamOf(stream_handle);
    Require(stream.context->device == call.context->device, CUDA_ERROR_INVALID_HANDLE);
    if (IsCapturing(stream)) {
      AddCaptured(call, stream,
                  std::make_shared<KernelWork>(std::move(launch),
                                               reinterpret_cast<CUcontext>(call.context)));
    } else {
      call.Submit(stream, MakeLaunch(call.sim, launch));
    }
  });
}

bool IsCooperative(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      return config.attrs[i].value.cooperative != 0;
  }
  return false;
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuLaunchKernel)
(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
 unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
 CUstream stream, void** parameters, void** extra) {
  const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return Launch(function, shape, stream, parameters, extra);
}

// All attributes except cooperation refine scheduling, which the device does not model.
SIM_API(cuLaunchKernelEx)
(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes};
  return Launch(function, shape, config->hStream, parameters, extra,
                IsCooperative(*config) ? Blocks::kAllResident : Blocks::kAnyNumber);
}

SIM_API(cuLaunchCooperativeKernel)
(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
 unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
 CUstream stream, void** parameters) {
  const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return Launch(function, shape, stream, parameters, nullptr, Blocks::kAllResident);
}
