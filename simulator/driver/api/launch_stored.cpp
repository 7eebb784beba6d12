// The oldest way to launch: calls store shape and parameters in the kernel, then launch a grid.
//
// Stored values stay until the next store. Source: cuParamSetv and its kin, cuLaunchGrid (cuda.h).
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {
namespace {

struct Stored {
  int block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<unsigned char> parameters;
};

std::mutex mutex;
std::map<CUfunction, Stored> all_stored;

template <typename Change>
CUresult Store(CUfunction kernel, Change change) {
  return WithContext([&](Call& call) {
    Require(call.sim.kernels.contains(reinterpret_cast<Kernel*>(kernel)),
            CUDA_ERROR_INVALID_HANDLE);
    const std::lock_guard lock(mutex);
    change(all_stored[kernel]);
  });
}

CUresult StoreParameter(CUfunction kernel, int offset, const void* value, unsigned bytes) {
  return Store(kernel, [&](Stored& stored) {
    Require(offset >= 0 && value != nullptr);
    const auto end = static_cast<std::size_t>(offset) + bytes;
    if (stored.parameters.size() < end) stored.parameters.resize(end);
    std::memcpy(stored.parameters.data() + offset, value, bytes);
  });
}

CUresult LaunchStored(CUfunction kernel, int width, int height, CUstream stream) {
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  Stored stored;
  {
    const std::lock_guard lock(mutex);
    const auto found = all_stored.find(kernel);
    if (found != all_stored.end()) stored = found->second;
  }
  std::size_t size_bytes = stored.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, stored.parameters.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size_bytes, CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(kernel, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                        static_cast<unsigned>(stored.block[0]),
                        static_cast<unsigned>(stored.block[1]),
                        static_cast<unsigned>(stored.block[2]), stored.shared_bytes, stream,
                        nullptr, size_bytes == 0 ? nullptr : extra);
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuFuncSetBlockShape)(CUfunction function, int x, int y, int z) {
  return Store(function, [&](Stored& stored) {
    Require(x > 0 && y > 0 && z > 0);
    stored.block[0] = x;
    stored.block[1] = y;
    stored.block[2] = z;
  });
}

SIM_API(cuFuncSetSharedSize)(CUfunction function, unsigned int bytes) {
  return Store(function, [&](Stored& stored) { stored.shared_bytes = bytes; });
}

SIM_API(cuParamSetSize)(CUfunction function, unsigned int bytes) {
  return Store(function, [&](Stored& stored) { stored.parameters.resize(bytes); });
}

SIM_API(cuParamSeti)(CUfunction function, int offset, unsigned int value) {
  return StoreParameter(function, offset, &value, sizeof value);
}

SIM_API(cuParamSetf)(CUfunction function, int offset, float value) {
  return StoreParameter(function, offset, &value, sizeof value);
}

SIM_API(cuParamSetv)(CUfunction function, int offset, void* value, unsigned int bytes) {
  return StoreParameter(function, offset, value, bytes);
}

SIM_API(cuLaunch)(CUfunction function) { return LaunchStored(function, 1, 1, nullptr); }

SIM_API(cuLaunchGrid)(CUfunction function, int width, int height) {
  return LaunchStored(function, width, height, nullptr);
}

SIM_API(cuLaunchGridAsync)(CUfunction function, int width, int height, CUstream stream) {
  return LaunchStored(function, width, height, stream);
}

SIM_API(cuLaunchCooperativeKernelMultiDevice)
(CUDA_LAUNCH_PARAMS* list, unsigned int count, unsigned int flags) {
  constexpr unsigned kFlags = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
                              CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
  if (list == nullptr || count == 0 || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& one = list[i];
    if (one.hStream == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = cuLaunchCooperativeKernel(
        one.function, one.gridDimX, one.gridDimY, one.gridDimZ, one.blockDimX, one.blockDimY,
        one.blockDimZ, one.sharedMemBytes, one.hStream, one.kernelParams);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}
