#include <cstring>

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {
namespace {

struct Known {
  const Allocation* allocation = nullptr;
  bool mapped = false;  // by virtual memory management
  bool reserved = false;
  CUmemAllocationProp properties = {};
  CUdeviceptr base = 0;
  std::size_t size_bytes = 0;
  CUdeviceptr range_base = 0;
  std::size_t range_bytes = 0;
};

Known Look(Simulator& sim, CUdeviceptr address) {
  Known known;
  known.allocation = sim.allocations.Find(address);
  if (known.allocation != nullptr) {
    known.base = known.range_base = known.allocation->base;
    known.size_bytes = known.range_bytes = known.allocation->size_bytes;
    return known;
  }
  known.reserved = sim.vmm.FindReservation(address, known.range_base, known.range_bytes);
  known.mapped = sim.vmm.FindMapping(address, known.properties, known.base, known.size_bytes);
  return known;
}

bool IsHost(const Known& known) {
  if (known.allocation == nullptr)
    return known.properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  return known.allocation->kind == AllocationKind::kPinnedHost ||
         known.allocation->kind == AllocationKind::kRegisteredHost;
}

bool IsManaged(const Known& known) {
  return known.allocation != nullptr && known.allocation->kind == AllocationKind::kManaged;
}

int DeviceOf(const Known& known) {
  if (known.allocation == nullptr) {
    return known.properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE
               ? known.properties.location.id
               : 0;
  }
  return known.allocation->context == nullptr ? known.allocation->device
                                              : known.allocation->context->ordinal();
}

template <class Value>
void Put(void* data, Value value) {
  std::memcpy(data, &value, sizeof value);
}

void Answer(const Known& known, CUpointer_attribute attribute, CUdeviceptr address, void* data) {
  const bool present = known.allocation != nullptr || known.mapped;
  if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) return Put(data, static_cast<bool>(present));
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
      attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
    Require(present || known.reserved);
    if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) return Put(data, known.range_bytes);
    return Put(data, known.range_base);
  }
  Require(present);
  const Allocation* const allocation = known.allocation;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Put(
          data, allocation == nullptr ? nullptr : reinterpret_cast<CUcontext>(allocation->context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put(data,
                 static_cast<unsigned>(IsHost(known) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Put(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      Require(IsHost(known) || IsManaged(known));
      return Put(data, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Put(data,
                 static_cast<int>(allocation != nullptr && allocation->synchronous_operations));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Put(data, static_cast<unsigned long long>(allocation == nullptr ? known.base >> 12
                                                                             : allocation->id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put(data, static_cast<int>(IsManaged(known)));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put(data, DeviceOf(known));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Put(data, static_cast<int>(allocation != nullptr &&
                                        allocation->kind == AllocationKind::kDevice));
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put(data, static_cast<unsigned long long>(known.properties.requestedHandleTypes));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return Put(data, int{0});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Put(data, static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put(
          data, allocation == nullptr ? nullptr : reinterpret_cast<CUmemoryPool>(allocation->pool));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Put(data, known.size_bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Put(data, known.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Put(data, static_cast<unsigned long long>(known.base >> 12));
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

std::size_t SizeOf(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return sizeof(bool);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return 4;
    default:
      return 8;
  }
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuPointerGetAttribute)(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return WithContext([&](Call& call) {
    Require(data != nullptr);
    Answer(Look(call.sim, address), attribute, address, data);
  });
}

// Unlike the single form, this answers zero for an attribute that the address lacks.
SIM_API(cuPointerGetAttributes)
(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) {
  return WithContext([&](Call& call) {
    Require(count != 0 && attributes != nullptr && data != nullptr);
    const Known known = Look(call.sim, address);
    for (unsigned i = 0; i < count; ++i) {
      std::memset(data[i], 0, SizeOf(attributes[i]));
      if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) Put(data[i], int{-2});
      try {
        Answer(known, attributes[i], address, data[i]);
      } catch (const Failure&) {
        continue;
      }
    }
  });
}

SIM_API(cuPointerSetAttribute)
(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return WithContext([&](Call& call) {
    Require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    Allocation* const allocation = call.sim.allocations.Find(address);
    Require(allocation != nullptr);
    allocation->synchronous_operations = *static_cast<const unsigned*>(value) != 0;
  });
}
