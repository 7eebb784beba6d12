// Pools that only need memory on their own device use the job's memory, and report like the
// driver's (ledger/pools.h). The driver serves the others.
#include "interposer/ledger/pools.h"
#include "interposer/record/call_sites.h"

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/memory_hooks.h"
#include "interposer/entry/pass_through.h"
#include "interposer/entry/pool_charges.h"
#include "interposer/execute/turn_gate.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::PoolFigures;
using interposer::Pools;
using interposer::PoolService;

CUdevice DeviceHere() {
  CUdevice device = -1;
  return Driver().cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

// The default pool is first seen here.
CUmemoryPool CurrentPool(CUdevice device) {
  if (const CUmemoryPool known = Pools::Instance().Current(device)) return known;
  CUmemoryPool current = nullptr;
  if (Driver().cuDeviceGetMemPool(&current, device) != CUDA_SUCCESS) return nullptr;
  Pools::Instance().SetCurrent(device, current);
  return current;
}

// The driver creates default pools without a call.
PoolService ServiceOf(CUmemoryPool pool, CUdevice here) {
  CUdevice device = here;
  const PoolService service = Pools::Instance().Service(pool, &device);
  if (service != PoolService::kUnknown) {
    return service == PoolService::kServed && device != here ? PoolService::kShared : service;
  }
  CUmemoryPool own = nullptr;
  if (Driver().cuDeviceGetDefaultMemPool(&own, here) != CUDA_SUCCESS || own != pool) return service;
  Pools::Instance().Add(pool, here, PoolService::kServed);
  return PoolService::kServed;
}

// `named`: the pool that the call names, or null. `call()` is the driver's. Always inlined into the
// hook, whose return address is the program's.
template <class Call>
[[gnu::always_inline]] inline CUresult AllocateFrom(CUmemoryPool named, CUdeviceptr* out,
                                                    size_t bytes, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !out || !bytes || !HasContext()) return call();
  const interposer::TurnPass turn;
  const CUdevice here = DeviceHere();
  const CUmemoryPool pool = named ? named : CurrentPool(here);
  const PoolService service = ServiceOf(pool, here);
  JobMemory* const job = interposer::JobForAllocation();
  JobMemory* const managed = service == PoolService::kServed ? job : nullptr;
  if (!managed) {
    if (service == PoolService::kHost) return call();
    const CUresult result = PassThrough(
        job ? job : interposer::JobHere(), bytes, [out] { return *out; }, call, pool);
    if (result == CUDA_SUCCESS) Pools::Instance().Allocated(pool, *out, bytes);
    return result;
  }
  const CUresult result = managed->allocations().Allocate(bytes, out);
  if (result != CUDA_SUCCESS) return result;
  Pools::Instance().Allocated(pool, *out, bytes);
  interposer::call_sites::Sample(bytes, __builtin_return_address(0));
  return result;
}

// The program sees the sum of the driver's figure and ours, however the pool's memory is divided.
CUresult AddOurs(CUmemoryPool pool, CUmemPool_attribute attribute, CUresult result, void* value) {
  if (result != CUDA_SUCCESS || ForwardsEverything()) return result;
  const std::optional<PoolFigures> figures = Pools::Instance().Read(pool);
  if (!figures) return result;
  auto* const bytes = static_cast<cuuint64_t*>(value);
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) *bytes += figures->used_bytes;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) *bytes += figures->used_high_bytes;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) *bytes += figures->reserved_bytes;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) *bytes += figures->reserved_high_bytes;
  return result;
}

template <class Then>
CUresult After(CUresult result, Then then) {
  if (result == CUDA_SUCCESS && !ForwardsEverything()) then(Pools::Instance());
  return result;
}

// A device's default pool may be named before its first allocation.
void RegisterDefaultPool(CUmemoryPool pool) {
  CUmemoryPool own = nullptr;
  for (CUdevice device = 0; Driver().cuDeviceGetDefaultMemPool(&own, device) == CUDA_SUCCESS;
       ++device) {
    if (own == pool) return Pools::Instance().Add(pool, device, PoolService::kServed);
  }
}

bool LetsOthersIn(CUmemoryPool pool, const CUmemAccessDesc* accesses, size_t count) {
  CUdevice device = 0;
  if (Pools::Instance().Service(pool, &device) == PoolService::kUnknown) RegisterDefaultPool(pool);
  if (Pools::Instance().Service(pool, &device) != PoolService::kServed) return false;
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccessDesc& access = accesses[i];
    const bool own =
        access.location.type == CU_MEM_LOCATION_TYPE_DEVICE && access.location.id == device;
    if (!own && access.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) return true;
  }
  return false;
}

bool LiesOnHost(const CUmemPoolProps& properties) {
  return properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

// Grants or withdraws the device's access to served allocations; changes nothing on failure.
CUresult SetAccessOfServed(CUmemoryPool pool, CUdevice peer, bool allowed) {
  const std::vector<CUdeviceptr> served = Pools::Instance().ServedFrom(pool);
  bool any_left = Pools::Instance().SetPeer(pool, peer, allowed);
  const auto deny = [&](CUdeviceptr address) {
    if (JobMemory* const job = interposer::JobOwning(address))
      job->sharing().DenyPeerAt(address, peer, !any_left);
  };
  if (!allowed) {
    for (const CUdeviceptr address : served) deny(address);
    return CUDA_SUCCESS;
  }
  for (const CUdeviceptr address : served) {
    JobMemory* const job = interposer::JobOwning(address);
    const CUresult result = job ? job->sharing().AllowPeerAt(address, peer) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) continue;
    const CUmemAccessDesc none{{CU_MEM_LOCATION_TYPE_DEVICE, peer}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    Driver().cuMemPoolSetAccess(pool, &none, 1);
    any_left = Pools::Instance().SetPeer(pool, peer, false);
    for (const CUdeviceptr each : served) deny(each);
    return result;
  }
  return CUDA_SUCCESS;
}

// A pool's access covers past allocations, too. Those that we served change their access here.
CUresult SetAccessOfServed(CUmemoryPool pool, const CUmemAccessDesc* accesses, size_t count) {
  if (LetsOthersIn(pool, accesses, count)) {
    interposer::VisibleWork::MakeAllWorkVisible();
    Pools::Instance().Share(pool);
  }
  CUdevice own = 0;
  if (Pools::Instance().Service(pool, &own) != PoolService::kShared) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    const CUmemLocation& location = accesses[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id == own) continue;
    const bool allowed = accesses[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    result = SetAccessOfServed(pool, location.id, allowed);
  }
  return result;
}

// A capturing stream's allocations become graph nodes with the driver's memory (hooks_graph.cpp).
bool BelongsToGraph(StreamName stream) {
  return interposer::CapturesGoOn() && interposer::IsCapturing(stream);
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::After;
using spillway::entry::AllocateFrom;
using spillway::entry::BelongsToGraph;
using spillway::entry::ForwardsEverything;
using spillway::entry::Free;
using spillway::entry::JobMemory;
using spillway::entry::ReentryGuard;
using spillway::interposer::Pools;
using spillway::interposer::VisibleWork;

#define SPILLWAY_STREAM_ORDERED(suffix, per_thread)                                              \
  SPILLWAY_EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr* out, size_t bytes,               \
                                                   CUstream stream) {                            \
    const auto call = [&] { return Driver().cuMemAllocAsync##suffix(out, bytes, stream); };      \
    if (BelongsToGraph({stream, per_thread})) return call();                                     \
    return AllocateFrom(nullptr, out, bytes, call);                                              \
  }                                                                                              \
  SPILLWAY_EXPORT CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr* out, size_t bytes,       \
                                                           CUmemoryPool pool, CUstream stream) { \
    const auto call = [&] {                                                                      \
      return Driver().cuMemAllocFromPoolAsync##suffix(out, bytes, pool, stream);                 \
    };                                                                                           \
    const bool is_ours = pool && !BelongsToGraph({stream, per_thread});                          \
    return is_ours ? AllocateFrom(pool, out, bytes, call) : call();                              \
  }                                                                                              \
  SPILLWAY_EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr address, CUstream stream) {        \
    const auto call = [&] { return Driver().cuMemFreeAsync##suffix(address, stream); };          \
    if (BelongsToGraph({stream, per_thread})) return call();                                     \
    return Free(                                                                                 \
        address,                                                                                 \
        [&](JobMemory* job) {                                                                    \
          return job->allocations().FreeAsync(address, {stream, per_thread});                    \
        },                                                                                       \
        call);                                                                                   \
  }
SPILLWAY_STREAM_ORDERED(, false)
SPILLWAY_STREAM_ORDERED(_ptsz, true)

SPILLWAY_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return After(Driver().cuMemPoolCreate(pool, properties), [&](Pools& pools) {
    pools.Add(*pool, properties->location.id, spillway::interposer::ServiceOf(*properties));
    if (spillway::entry::LiesOnHost(*properties)) VisibleWork::MakeAllWorkVisible();
  });
}
SPILLWAY_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return After(Driver().cuMemPoolDestroy(pool), [pool](Pools& pools) {
    pools.Destroyed(pool);
    spillway::entry::ForgetPassedThrough(spillway::entry::NameOf(pool));
  });
}
SPILLWAY_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes) {
  return After(Driver().cuMemPoolTrimTo(pool, keep_bytes), [&](Pools& pools) {
    pools.TrimTo(pool, keep_bytes);
    spillway::entry::SettlePoolCharges();
  });
}
SPILLWAY_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* accesses,
                                            size_t count) {
  const ReentryGuard guard;
  const CUresult result = Driver().cuMemPoolSetAccess(pool, accesses, count);
  if (result != CUDA_SUCCESS || !guard.IsOutermost() || ForwardsEverything()) return result;
  return spillway::entry::SetAccessOfServed(pool, accesses, count);
}
SPILLWAY_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                               void* value) {
  return spillway::entry::AddOurs(pool, attribute,
                                  Driver().cuMemPoolGetAttribute(pool, attribute, value), value);
}
SPILLWAY_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                               void* value) {
  return After(Driver().cuMemPoolSetAttribute(pool, attribute, value), [&](Pools& pools) {
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pools.ResetUsedHigh(pool);
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pools.ResetReservedHigh(pool);
  });
}

SPILLWAY_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return After(Driver().cuDeviceSetMemPool(device, pool),
               [](Pools& pools) { pools.ForgetCurrent(); });
}
SPILLWAY_EXPORT CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                         CUmemoryPool pool) {
  return After(Driver().cuMemSetMemPool(location, type, pool),
               [](Pools& pools) { pools.ForgetCurrent(); });
}
