// Peer access: all devices are peers of each other.
//
// Ordinary allocations become reachable by cuCtxEnablePeerAccess, here for all contexts of the
// peer's device: they share a heap. Virtual memory and pools name their devices.
#include "simulator/driver/calls/call.h"

using namespace spillway::simulator;

SIM_API(cuDeviceCanAccessPeer)(int* can, CUdevice device, CUdevice peer) {
  return WithDriver([&](Call& call) {
    Require(can != nullptr);
    call.sim.devices.At(device);
    call.sim.devices.At(peer);
    *can = device != peer;
  });
}

SIM_API(cuDeviceGetP2PAttribute)
(int* value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice target) {
  return WithDriver([&](Call& call) {
    Require(value != nullptr);
    call.sim.devices.At(source);
    call.sim.devices.At(target);
    Require(source != target, CUDA_ERROR_INVALID_DEVICE);
    switch (attribute) {
      case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = 0;
        return;
      case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 1;
        return;
      default:
        throw Failure{CUDA_ERROR_INVALID_VALUE};
    }
  });
}

SIM_API(cuCtxEnablePeerAccess)(CUcontext handle, unsigned int flags) {
  return WithContext([&](Call& call) {
    Require(flags == 0);
    auto* const peer = reinterpret_cast<Context*>(handle);
    Require(call.sim.IsContext(peer) && peer != call.context, CUDA_ERROR_INVALID_CONTEXT);
    Require(peer->device != call.context->device, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    Require(call.context->peers.insert(peer).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  });
}

SIM_API(cuCtxDisablePeerAccess)(CUcontext handle) {
  return WithContext([&](Call& call) {
    auto* const peer = reinterpret_cast<Context*>(handle);
    Require(call.sim.IsContext(peer), CUDA_ERROR_INVALID_CONTEXT);
    Require(call.context->peers.erase(peer) == 1, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  });
}
