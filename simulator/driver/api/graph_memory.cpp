#include "simulator/driver/calls/call.h"
#include "simulator/driver/device/device.h"

namespace spillway::simulator {
namespace {

std::uint64_t Read(GraphMemory& memory, const Device& device, CUgraphMem_attribute attribute) {
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      return memory.UsedBytes(device);
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      return memory.used_high_bytes[&device];
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      return memory.ReservedBytes(device);
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      return memory.reserved_high_bytes[&device];
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuDeviceGetGraphMemAttribute)
(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return WithDriver([&](Call& call) {
    Require(value != nullptr);
    *static_cast<cuuint64_t*>(value) =
        Read(call.sim.graph_memory, call.sim.devices.At(device), attribute);
  });
}

// As documented, a high-water mark can only be reset.
SIM_API(cuDeviceSetGraphMemAttribute)
(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return WithDriver([&](Call& call) {
    Require(value != nullptr && *static_cast<const cuuint64_t*>(value) == 0);
    GraphMemory& memory = call.sim.graph_memory;
    const Device& on = call.sim.devices.At(device);
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
      memory.used_high_bytes[&on] = memory.UsedBytes(on);
    else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
      memory.reserved_high_bytes[&on] = memory.ReservedBytes(on);
    else
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  });
}

SIM_API(cuDeviceGraphMemTrim)(CUdevice device) {
  return WithDriver([&](Call& call) { call.sim.graph_memory.Trim(call.sim.devices.At(device)); });
}
