#include <algorithm>

#include "simulator/driver/calls/capture.h"
#include "simulator/driver/machine/statistics.h"

namespace spillway::simulator {
namespace {

CUcontext Handle(Context* context) { return reinterpret_cast<CUcontext>(context); }
Context* Pointer(CUcontext handle) { return reinterpret_cast<Context*>(handle); }

Context* CurrentOrNull() { return CurrentContexts().empty() ? nullptr : CurrentContexts().back(); }

Context& Checked(Call& call, CUcontext handle) {
  Context* const context = handle == nullptr ? CurrentOrNull() : Pointer(handle);
  Require(call.sim.IsContext(context), CUDA_ERROR_INVALID_CONTEXT);
  return *context;
}

void FreeEverythingOf(Call& call, Context* context) {
  Simulator& sim = call.sim;
  std::erase_if(sim.streams, [&](auto& entry) { return entry.second->context == context; });
  std::erase_if(sim.events, [&](auto& entry) { return entry.second->context == context; });
  std::vector<std::uintptr_t> left;
  for (const auto& [base, allocation] : sim.allocations.all()) {
    if (allocation.context == context && allocation.kind != AllocationKind::kPool)
      left.push_back(base);
  }
  for (const std::uintptr_t base : left) sim.Release(base);
  --TheStatistics().contexts_of_device[static_cast<std::size_t>(context->ordinal())];
  sim.arrays.DestroyAllOf(context);
}

void Drain(Call& call, const Context& context) {
  for (const OperationRef& tail : context.Tails()) call.sim.engine.Wait(call.lock, tail);
}

void ForgetAsPeer(Call& call, const Context* gone) {
  for (const auto& [key, context] : call.sim.contexts) context->peers.erase(gone);
  for (const auto& device : call.sim.devices) {
    if (device->primary != nullptr) device->primary->peers.erase(gone);
  }
}

void DestroyPrimary(Call& call, Device& device) {
  if (device.primary == nullptr) return;
  Drain(call, *device.primary);
  FreeEverythingOf(call, device.primary.get());
  ForgetAsPeer(call, device.primary.get());
  device.primary.reset();
  device.primary_references = 0;
}

CUresult Create(CUcontext* handle, unsigned flags, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(handle != nullptr);
    auto context = call.sim.MakeContext(call.sim.devices.At(device), flags, false);
    Context* const key = context.get();
    call.sim.contexts.emplace(key, std::move(context));
    CurrentContexts().push_back(key);
    *handle = Handle(key);
  });
}

CUresult Destroy(CUcontext handle) {
  return WithDriver([&](Call& call) {
    Context& context = Checked(call, handle);
    Require(!context.primary, CUDA_ERROR_INVALID_CONTEXT);
    Drain(call, context);
    FreeEverythingOf(call, &context);
    ForgetAsPeer(call, &context);
    if (CurrentOrNull() == &context) CurrentContexts().pop_back();
    call.sim.contexts.erase(&context);
  });
}

CUresult Push(CUcontext handle) {
  return WithDriver([&](Call& call) {
    Require(call.sim.IsContext(Pointer(handle)), CUDA_ERROR_INVALID_CONTEXT);
    CurrentContexts().push_back(Pointer(handle));
  });
}

CUresult Pop(CUcontext* handle) {
  return WithDriver([&](Call&) {
    Require(!CurrentContexts().empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (handle != nullptr) *handle = Handle(CurrentContexts().back());
    CurrentContexts().pop_back();
  });
}

CUresult Synchronise(CUcontext handle) {
  return WithContext([&](Call& call) {
    RefuseWhileCapturing(call);
    call.WaitForContext(Checked(call, handle));
    call.TrimPools();
  });
}

CUresult ReleasePrimary(CUdevice device) {
  return WithDriver([&](Call& call) {
    Device& chosen = call.sim.devices.At(device);
    Require(chosen.primary_references > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--chosen.primary_references == 0) DestroyPrimary(call, chosen);
  });
}

CUresult ResetPrimary(CUdevice device) {
  return WithDriver([&](Call& call) { DestroyPrimary(call, call.sim.devices.At(device)); });
}

CUresult SetPrimaryFlags(CUdevice device, unsigned flags) {
  return WithDriver([&](Call& call) {
    Device& chosen = call.sim.devices.At(device);
    chosen.primary_flags = flags;
    if (chosen.primary != nullptr) chosen.primary->flags = flags;
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuDevicePrimaryCtxRetain)(CUcontext* handle, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(handle != nullptr);
    Device& chosen = call.sim.devices.At(device);
    if (chosen.primary == nullptr)
      chosen.primary = call.sim.MakeContext(chosen, chosen.primary_flags, true);
    ++chosen.primary_references;
    *handle = Handle(chosen.primary.get());
  });
}

SIM_API(cuDevicePrimaryCtxRelease)(CUdevice device) { return ReleasePrimary(device); }
SIM_API(cuDevicePrimaryCtxRelease_v2)(CUdevice device) { return ReleasePrimary(device); }
SIM_API(cuDevicePrimaryCtxReset)(CUdevice device) { return ResetPrimary(device); }
SIM_API(cuDevicePrimaryCtxReset_v2)(CUdevice device) { return ResetPrimary(device); }
SIM_API(cuDevicePrimaryCtxSetFlags)(CUdevice device, unsigned int flags) {
  return SetPrimaryFlags(device, flags);
}
SIM_API(cuDevicePrimaryCtxSetFlags_v2)(CUdevice device, unsigned int flags) {
  return SetPrimaryFlags(device, flags);
}

SIM_API(cuDevicePrimaryCtxGetState)(CUdevice device, unsigned int* flags, int* active) {
  return WithDriver([&](Call& call) {
    Require(flags != nullptr && active != nullptr);
    const Device& chosen = call.sim.devices.At(device);
    *flags = chosen.primary_flags;
    *active = chosen.primary != nullptr;
  });
}

SIM_API(cuCtxCreate)(CUcontext* handle, unsigned int flags, CUdevice device) {
  return Create(handle, flags, device);
}
SIM_API(cuCtxCreate_v2)(CUcontext* handle, unsigned int flags, CUdevice device) {
  return Create(handle, flags, device);
}
SIM_API(cuCtxCreate_v3)
(CUcontext* handle, CUexecAffinityParam* affinity, int count, unsigned int flags, CUdevice device) {
  if (affinity != nullptr || count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(handle, flags, device);
}
SIM_API(cuCtxCreate_v4)
(CUcontext* handle, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  if (parameters != nullptr && parameters->execAffinityParams != nullptr)
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(handle, flags, device);
}
SIM_API(cuCtxDestroy)(CUcontext handle) { return Destroy(handle); }
SIM_API(cuCtxDestroy_v2)(CUcontext handle) { return Destroy(handle); }
SIM_API(cuCtxPushCurrent)(CUcontext handle) { return Push(handle); }
SIM_API(cuCtxPushCurrent_v2)(CUcontext handle) { return Push(handle); }
SIM_API(cuCtxPopCurrent)(CUcontext* handle) { return Pop(handle); }
SIM_API(cuCtxPopCurrent_v2)(CUcontext* handle) { return Pop(handle); }
SIM_API(cuCtxSynchronize)() { return Synchronise(nullptr); }
SIM_API(cuCtxSynchronize_v2)(CUcontext handle) { return Synchronise(handle); }

SIM_API(cuCtxSetCurrent)(CUcontext handle) {
  return WithDriver([&](Call& call) {
    if (!CurrentContexts().empty()) CurrentContexts().pop_back();
    if (handle == nullptr) return;
    Require(call.sim.IsContext(Pointer(handle)), CUDA_ERROR_INVALID_CONTEXT);
    CurrentContexts().push_back(Pointer(handle));
  });
}

SIM_API(cuCtxGetCurrent)(CUcontext* handle) {
  return WithDriver([&](Call&) {
    Require(handle != nullptr);
    *handle = Handle(CurrentOrNull());
  });
}

SIM_API(cuCtxGetDevice)(CUdevice* device) {
  return WithDriver([&](Call& call) {
    Require(device != nullptr);
    *device = Checked(call, nullptr).ordinal();
  });
}

SIM_API(cuCtxGetDevice_v2)(CUdevice* device, CUcontext handle) {
  return WithDriver([&](Call& call) {
    Require(device != nullptr);
    *device = Checked(call, handle).ordinal();
  });
}

SIM_API(cuCtxGetFlags)(unsigned int* flags) {
  return WithDriver([&](Call& call) {
    Require(flags != nullptr);
    *flags = Checked(call, nullptr).flags;
  });
}

SIM_API(cuCtxSetFlags)(unsigned int flags) {
  return WithDriver([&](Call& call) { Checked(call, nullptr).flags = flags; });
}

SIM_API(cuCtxGetId)(CUcontext handle, unsigned long long* id) {
  return WithDriver([&](Call& call) {
    Require(id != nullptr);
    *id = Checked(call, handle).id;
  });
}

SIM_API(cuCtxGetApiVersion)(CUcontext handle, unsigned int* version) {
  return WithDriver([&](Call& call) {
    Require(version != nullptr);
    Checked(call, handle);
    *version = 3020;
  });
}

SIM_API(cuCtxGetLimit)(size_t* value, CUlimit limit) {
  return WithContext([&](Call& call) {
    const auto found = call.context->limits.find(limit);
    Require(value != nullptr && found != call.context->limits.end(), CUDA_ERROR_UNSUPPORTED_LIMIT);
    *value = found->second;
  });
}

SIM_API(cuCtxSetLimit)(CUlimit limit, size_t value) {
  return WithContext([&](Call& call) {
    const auto found = call.context->limits.find(limit);
    Require(found != call.context->limits.end(), CUDA_ERROR_UNSUPPORTED_LIMIT);
    found->second = value;
  });
}

SIM_API(cuCtxGetCacheConfig)(CUfunc_cache* config) {
  return WithContext([&](Call& call) {
    Require(config != nullptr);
    *config = static_cast<CUfunc_cache>(call.context->cache_config);
  });
}

SIM_API(cuCtxSetCacheConfig)(CUfunc_cache config) {
  return WithContext([&](Call& call) { call.context->cache_config = config; });
}

SIM_API(cuCtxGetSharedMemConfig)(CUsharedconfig* config) {
  return WithContext([&](Call&) {
    Require(config != nullptr);
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  });
}

SIM_API(cuCtxSetSharedMemConfig)(CUsharedconfig config) {
  (void)config;
  return WithContext([](Call&) {});
}

SIM_API(cuCtxGetStreamPriorityRange)(int* least, int* greatest) {
  return WithContext([&](Call&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
  });
}

SIM_API(cuCtxResetPersistingL2Cache)() {
  return WithContext([](Call&) {});
}

SIM_API(cuProfilerStart)() {
  return WithContext([](Call&) {});
}

SIM_API(cuProfilerStop)() {
  return WithContext([](Call&) {});
}
