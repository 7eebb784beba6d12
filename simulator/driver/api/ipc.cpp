// Only memory of cuMemAlloc can be exported here.
#include <unistd.h>

#include <cstring>

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kMemoryMagic = 0x6d656d2d63706973;
constexpr std::uint64_t kEventMagic = 0x7665652d63706973;

struct ExportedEvent {
  std::uint64_t magic;
  FilePlace place;
};

template <class Exported, class Handle>
void Pack(Handle* handle, const Exported& exported) {
  std::memset(handle->reserved, 0, sizeof handle->reserved);
  std::memcpy(handle->reserved, &exported, sizeof exported);
}

template <class Exported, class Handle>
Exported Unpack(const Handle& handle, std::uint64_t magic) {
  Exported exported;
  std::memcpy(&exported, handle.reserved, sizeof exported);
  Require(exported.magic == magic);
  return exported;
}

CUresult OpenMemory(CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags) {
  return WithContext([&](Call& call) {
    Require(address != nullptr && (flags & ~unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS}) == 0);
    const auto memory = Unpack<ExportedMemory>(handle, kMemoryMagic);
    Require(memory.place.pid != getpid(), CUDA_ERROR_INVALID_CONTEXT);
    bool fresh = false;
    *address = call.sim.imports.Open(memory, *call.context, fresh);
    if (!fresh) return;
    call.sim.first_uses.NoteWritten(*address, memory.size_bytes);
    call.sim.allocations.Add({.base = *address,
                              .size_bytes = memory.size_bytes,
                              .kind = AllocationKind::kOpened,
                              .context = call.context,
                              .device = call.sim.imports.DeviceOf(*address)});
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuIpcGetMemHandle)(CUipcMemHandle* handle, CUdeviceptr address) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr);
    const Allocation* allocation = call.sim.allocations.Find(address);
    Require(allocation != nullptr && allocation->kind == AllocationKind::kDevice);
    Pack(handle, Export(call.sim.addresses, kMemoryMagic, allocation->base, allocation->size_bytes,
                        allocation->id, 0));
  });
}

SIM_API(cuIpcOpenMemHandle)(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  return OpenMemory(address, handle, flags);
}
SIM_API(cuIpcOpenMemHandle_v2)(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  return OpenMemory(address, handle, flags);
}

SIM_API(cuIpcCloseMemHandle)(CUdeviceptr address) {
  return WithContext([&](Call& call) {
    const auto require_it = [&] {
      const Allocation* opened = call.sim.allocations.FindBase(address);
      Require(opened != nullptr && opened->kind == AllocationKind::kOpened);
    };
    require_it();
    call.WaitForContext(*call.context);
    require_it();  // another thread may have closed it
    if (call.sim.imports.Close(address)) call.sim.allocations.Remove(address);
  });
}

SIM_API(cuIpcGetEventHandle)(CUipcEventHandle* handle, CUevent event_handle) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr);
    const Event& event = call.EventOf(event_handle);
    Require(event.shared != nullptr, CUDA_ERROR_INVALID_HANDLE);
    Pack(handle, ExportedEvent{kEventMagic, event.shared->place()});
  });
}

SIM_API(cuIpcOpenEventHandle)(CUevent* event, CUipcEventHandle handle) {
  return WithContext([&](Call& call) {
    Require(event != nullptr);
    auto shared = SharedEvent::Open(Unpack<ExportedEvent>(handle, kEventMagic).place);
    Require(shared != nullptr, CUDA_ERROR_MAP_FAILED);
    auto opened = std::make_unique<Event>();
    opened->flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    opened->context = call.context;
    opened->shared = std::move(shared);
    *event = reinterpret_cast<CUevent>(opened.get());
    call.sim.events.emplace(opened.get(), std::move(opened));
  });
}
