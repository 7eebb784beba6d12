// The program's own virtual memory: cuMemCreate and its mappings.
//
// Its physical memory on a device counts against the budget from its creation to its end. Once the
// program has mapped memory and may use it, the job moves it (execute/own_memory.h). It stays on
// the device where that is not possible, or not known to be right:
//  - It is not plain: compressed, for tiles, with a fabric handle, or open to network cards where
//    the machine has any (gpuDirectRDMACapable).
//  - It is mapped several times, another device or process may use it, or a function got its handle
//    that is not known to keep none.
//  - Other mappings are next to it. A kernel that is given an address in one of them may go on into
//    the next, as a tensor of PyTorch's expandable segments does.
//
// Memory on the host, imported memory and multicast objects are the driver's, and not counted.
// Programs get no handles of our chunks (libraries that register buffers ask for them). They get
// the driver's answer for memory that cuMemCreate did not make.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/unknown_functions.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/mark_visible.h"
#include "interposer/ledger/own_mappings.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::kGranuleBytes;
using interposer::OwnMappings;
using interposer::OwnMemoryKind;
using interposer::Unmovable;
using Memory = OwnMappings::Memory;
using Mapping = OwnMappings::Mapping;

constexpr size_t kLargestGuardBytes = size_t{1} << 30;
constexpr CUdeviceptr kAddresses = CUdeviceptr{1} << 48;  // what the ledger covers

OwnMappings& Own() { return OwnMappings::Instance(); }
JobMemory* JobOf(const Memory* memory) { return static_cast<JobMemory*>(memory->payer); }

// Owners of pins. Handles of ours have no such bit.
std::uint64_t RunOwner(const Memory* memory) { return memory->handle; }
std::uint64_t GoodOwner(const Memory* memory) { return memory->handle | (std::uint64_t{1} << 61); }

// The job of the memory's device. Null: on the host, or a request that the driver would refuse.
JobMemory* Payer(size_t bytes, const CUmemAllocationProp* properties) {
  if (!properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return nullptr;
  if (!bytes || bytes % kGranuleBytes != 0) return nullptr;
  const CUdevice device = properties->location.id;
  if (JobMemory* const job = interposer::JobOf(device)) return job;
  CUdevice current = -1;
  const bool here = Driver().cuCtxGetDevice(&current) == CUDA_SUCCESS && current == device;
  return here ? interposer::JobForAllocation() : nullptr;
}

// Whether other devices of the machine may use memory by its physical addresses, unseen: network
// cards (nvidia-peermem) and drivers like GDRCopy's. Asked once.
bool MachineHasRdma() {
  static const bool has_rdma = [] {
    if (access("/sys/module/nvidia_peermem", F_OK) == 0 || access("/dev/gdrdrv", F_OK) == 0)
      return true;
    DIR* const cards = opendir("/sys/class/infiniband");
    int entries = 0;
    while (cards && readdir(cards)) ++entries;
    if (cards) closedir(cards);
    return entries > 2;  // beside . and ..
  }();
  return has_rdma;
}

// Whether the program has looked up a younger function that takes a handle, such as
// cuMulticastBindMem_v2 (CUDA 13.1): it needs the driver's own.
bool HandlesMayBeTakenUnseen() {
  for (size_t i = 0; const char* const name = driver::UnknownFunctionName(i); ++i) {
    const std::string_view unknown = name;
    if (unknown.starts_with("cuMulticast") || unknown.starts_with("cuMemMap")) return true;
  }
  return false;
}

bool IsPlain(const CUmemAllocationProp& properties) {
  if (properties.allocFlags.gpuDirectRDMACapable && MachineHasRdma()) return false;
  const bool has_plain_handle =
      (properties.requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0;
  return properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && has_plain_handle &&
         properties.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_NONE &&
         properties.allocFlags.usage == 0;
}

CUresult Create(CUmemGenericAllocationHandle* handle, size_t bytes,
                const CUmemAllocationProp* properties, unsigned long long flags) {
  const auto call = [&] { return Driver().cuMemCreate(handle, bytes, properties, flags); };
  const ReentryGuard guard;
  JobMemory* const payer = guard.IsOutermost() && handle ? Payer(bytes, properties) : nullptr;
  if (!payer) return call();
  const interposer::TurnPass turn;
  if (!payer->charges().Charge(bytes, Unmovable::kOwnMapping))
    return payer->charges().Refuse(bytes);
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    payer->charges().Discharge(bytes, Unmovable::kOwnMapping);
    return result;
  }
  const base::MutexLock lock(Own().mutex);
  const bool is_real = HandlesMayBeTakenUnseen();
  Memory* const memory =
      Own().Created(*handle, bytes, *properties, payer,
                    is_real ? OwnMappings::Name::kReal : OwnMappings::Name::kOurs);
  memory->stays = is_real || !IsPlain(*properties);
  *handle = memory->handle;
  return CUDA_SUCCESS;
}

// The driver's handle, valid as long as the memory is. `real`: of memory that has a range.
CUresult StaysForGood(Memory* memory, CUmemGenericAllocationHandle* real)
    SPILLWAY_REQUIRES(Own().mutex) {
  if (memory->range && !memory->real) {
    const CUresult result = JobOf(memory)->own_memory().Pin(GoodOwner(memory), memory->range,
                                                            Unmovable::kShared, &memory->real);
    if (result != CUDA_SUCCESS) return result;
  }
  memory->stays = true;
  *real = memory->real;
  return CUDA_SUCCESS;
}

// Makes the driver's call with the driver's handle for the program's.
template <class Call>
CUresult WithRealHandle(CUmemGenericAllocationHandle handle, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call(handle);
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  Memory* const memory = Own().Find(handle);
  if (!memory) return call(handle);
  CUmemGenericAllocationHandle real = 0;
  const CUresult result = StaysForGood(memory, &real);
  return result == CUDA_SUCCESS ? call(real) : result;
}

CUresult EndRange(Memory* memory) SPILLWAY_REQUIRES(Own().mutex) {
  interposer::OwnMemory& own = JobOf(memory)->own_memory();
  const CUresult result = own.End(memory->range);
  if (result != CUDA_SUCCESS) return result;
  own.EndPin(RunOwner(memory));
  own.EndPin(GoodOwner(memory));
  return CUDA_SUCCESS;
}

CUresult EndIfUnused(Memory* memory) SPILLWAY_REQUIRES(Own().mutex) {
  if (memory->references > 0 || memory->mappings > 0) return CUDA_SUCCESS;
  JobMemory* const job = JobOf(memory);
  if (memory->range) {
    if (const CUresult result = EndRange(memory); result != CUDA_SUCCESS) return result;
  } else {
    const CUresult result =
        memory->real ? Driver().cuMemRelease(memory->real) : CUDA_SUCCESS;  // 0: lost
    if (result != CUDA_SUCCESS) return result;
    if (job) job->charges().Discharge(memory->bytes, Unmovable::kOwnMapping);
  }
  Own().Ended(memory);
  return CUDA_SUCCESS;
}

CUresult Release(CUmemGenericAllocationHandle handle) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return Driver().cuMemRelease(handle);
  const base::MutexLock lock(Own().mutex);
  Memory* const memory = Own().Find(handle);
  if (!memory) return Driver().cuMemRelease(handle);
  if (memory->references == 0) return CUDA_ERROR_INVALID_VALUE;
  --memory->references;
  const CUresult result = EndIfUnused(memory);
  if (result != CUDA_SUCCESS) ++memory->references;
  return result;
}

CUresult Retain(CUmemGenericAllocationHandle* handle, CUdeviceptr address) {
  const auto call = [&] {
    return Driver().cuMemRetainAllocationHandle(handle, reinterpret_cast<void*>(address));
  };
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !handle) return call();
  const base::MutexLock lock(Own().mutex);
  const OwnMappings::List at = Own().Within(address, 1);
  if (!at.empty() && at.front().memory != Own().foreign()) {
    ++at.front().memory->references;
    *handle = at.front().memory->handle;
    return CUDA_SUCCESS;
  }
  return interposer::JobOwning(address) ? CUDA_ERROR_INVALID_VALUE : call();
}

// Mappings next to each other are pinned while they are: a use of one may be a use of all.
CUresult UpdateRuns(CUdeviceptr base, size_t bytes) SPILLWAY_REQUIRES(Own().mutex) {
  for (const Mapping& mapping : Own().Around(base, bytes)) {
    Memory* const memory = mapping.memory;
    const bool is_in_run =
        interposer::ordering_rules::kRunsStay && mapping.IsRange() && Own().HasNeighbour(mapping);
    if (!mapping.IsRange() || is_in_run == memory->is_in_run) continue;
    JobMemory* const job = JobOf(memory);
    CUmemGenericAllocationHandle chunk = 0;
    if (!is_in_run) {
      job->own_memory().EndPin(RunOwner(memory));
    } else if (const CUresult result = job->own_memory().Pin(RunOwner(memory), mapping.base,
                                                             Unmovable::kOwnMapping, &chunk);
               result != CUDA_SUCCESS) {
      return result;
    }
    memory->is_in_run = is_in_run;
  }
  return CUDA_SUCCESS;
}

CUresult UnmapOne(const Mapping& mapping) SPILLWAY_REQUIRES(Own().mutex) {
  Memory* const memory = mapping.memory;
  if (!mapping.IsRange()) {
    const CUresult result = Driver().cuMemUnmap(mapping.base, mapping.bytes);
    if (result != CUDA_SUCCESS) return result;
    Own().Unmapped(mapping.base);
    EndIfUnused(memory);
    return CUDA_SUCCESS;
  }
  const bool ends = memory->references == 0 && memory->mappings == 1;
  const CUresult result =
      ends ? EndRange(memory) : JobOf(memory)->own_memory().Move(&memory->range, 0);
  if (result != CUDA_SUCCESS) return result;
  Own().Unmapped(mapping.base);
  if (ends) {
    Own().Ended(memory);
  } else if (std::exchange(memory->is_in_run, false)) {
    JobOf(memory)->own_memory().EndPin(RunOwner(memory));
  }
  return CUDA_SUCCESS;
}

// `result` is of the mapping, which is taken back where a neighbour cannot stay.
CUresult NoteMapped(CUdeviceptr base, size_t bytes, Memory* memory, CUresult result)
    SPILLWAY_REQUIRES(Own().mutex) {
  if (result != CUDA_SUCCESS) return result;
  Own().Mapped(base, bytes, memory);
  const CUresult in_run = UpdateRuns(base, bytes);
  if (in_run == CUDA_SUCCESS) return CUDA_SUCCESS;
  UnmapOne({base, bytes, memory});
  UpdateRuns(base, bytes);
  return in_run;
}

// Memory of a range that the program has not mapped.
CUresult MapRange(CUdeviceptr base, Memory* memory) SPILLWAY_REQUIRES(Own().mutex) {
  if (!Own().Within(base, memory->bytes).empty()) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = JobOf(memory)->own_memory().Move(&memory->range, base);
  if (result != CUDA_SUCCESS) return result;
  return NoteMapped(base, memory->bytes, memory, CUDA_SUCCESS);
}

CUresult Map(CUdeviceptr base, size_t bytes, size_t offset_bytes,
             CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const auto call = [&](CUmemGenericAllocationHandle real) {
    return Driver().cuMemMap(base, bytes, offset_bytes, real, flags);
  };
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call(handle);
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  Memory* const memory = Own().Find(handle);
  if (!memory) return NoteMapped(base, bytes, Own().foreign(), call(handle));
  if (memory->references == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool is_whole = bytes == memory->bytes && offset_bytes == 0 && flags == 0;
  const bool fits = base % kGranuleBytes == 0 && base + bytes <= kAddresses;
  if (memory->range && memory->mappings == 0 && is_whole && fits) return MapRange(base, memory);
  if (memory->range || memory->mappings > 0 || !is_whole || !fits) {
    if (!Own().Within(base, bytes).empty()) return CUDA_ERROR_INVALID_VALUE;
    CUmemGenericAllocationHandle real = 0;
    if (const CUresult result = StaysForGood(memory, &real); result != CUDA_SUCCESS) return result;
  }
  return NoteMapped(base, bytes, memory, call(memory->real));
}

bool HasRange(const OwnMappings::List& mappings) {
  return std::any_of(mappings.begin(), mappings.end(),
                     [](const Mapping& mapping) { return mapping.IsRange(); });
}

// Whether each mapping in the list lies in the span whole.
bool AreWhole(const OwnMappings::List& mappings, CUdeviceptr base, size_t bytes) {
  return mappings.empty() ||
         (mappings.front().base >= base && mappings.back().end() <= base + bytes);
}

CUresult Unmap(CUdeviceptr base, size_t bytes) {
  const auto call = [&] { return Driver().cuMemUnmap(base, bytes); };
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const base::MutexLock lock(Own().mutex);
  const OwnMappings::List mappings = Own().Within(base, bytes);
  if (mappings.empty()) return interposer::JobOwning(base) ? CUDA_ERROR_INVALID_VALUE : call();
  if (!AreWhole(mappings, base, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!HasRange(mappings)) {
    if (const CUresult result = call(); result != CUDA_SUCCESS) return result;
    for (const Mapping& mapping : mappings) {
      Own().Unmapped(mapping.base);
      EndIfUnused(mapping.memory);
    }
    return UpdateRuns(base, bytes);
  }
  for (const Mapping& mapping : mappings) {
    if (const CUresult result = UnmapOne(mapping); result != CUDA_SUCCESS) return result;
  }
  return UpdateRuns(base, bytes);
}

bool LetsOthersIn(const CUmemAccessDesc* accesses, size_t count) {
  return count > 1 ||
         (count == 1 && accesses && accesses->location.type != CU_MEM_LOCATION_TYPE_DEVICE);
}

// Reading and writing, for the memory's device alone.
bool IsOrdinary(const CUmemAccessDesc* accesses, size_t count, const Memory* memory) {
  return count == 1 && accesses && accesses->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         (memory == Own().foreign() || accesses->location.id == memory->properties.location.id) &&
         accesses->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

bool AreOrdinary(const CUmemAccessDesc* accesses, size_t count, const OwnMappings::List& mappings) {
  return std::all_of(mappings.begin(), mappings.end(), [&](const Mapping& mapping) {
    return IsOrdinary(accesses, count, mapping.memory);
  });
}

// Memory of a second mapping stays, as does what has got any other access.
void Adopt(const Mapping& mapping) SPILLWAY_REQUIRES(Own().mutex) {
  Memory* const memory = mapping.memory;
  if (memory->range || memory->stays || memory->mappings > 1) return;
  const OwnMemoryKind kind = {
      .handle_type = memory->properties.requestedHandleTypes,
      .is_for_rdma = memory->properties.allocFlags.gpuDirectRDMACapable != 0};
  JobOf(memory)->own_memory().Adopt(mapping.base, mapping.bytes, memory->real, kind);
  memory->real = 0;
  memory->range = mapping.base;
}

CUresult SetAccess(CUdeviceptr base, size_t bytes, const CUmemAccessDesc* accesses, size_t count) {
  const auto call = [&] { return Driver().cuMemSetAccess(base, bytes, accesses, count); };
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  const OwnMappings::List mappings = Own().Within(base, bytes);
  if (!AreWhole(mappings, base, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const bool is_ordinary = AreOrdinary(accesses, count, mappings);
  if (!is_ordinary) {
    for (const Mapping& mapping : mappings) {
      CUmemGenericAllocationHandle real = 0;
      const CUresult result = StaysForGood(mapping.memory, &real);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  if (!is_ordinary || !HasRange(mappings)) {
    if (const CUresult result = call(); result != CUDA_SUCCESS) return result;
  } else {
    // A range has this access already, and may be away.
    for (const Mapping& mapping : mappings) {
      if (mapping.IsRange()) continue;
      const CUresult result = Driver().cuMemSetAccess(mapping.base, mapping.bytes, accesses, count);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  if (!is_ordinary) return CUDA_SUCCESS;
  for (const Mapping& mapping : mappings) Adopt(mapping);
  return UpdateRuns(base, bytes);
}

CUresult GetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  const auto call = [&] { return Driver().cuMemGetAccess(flags, location, address); };
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !flags || !location) return call();
  const base::MutexLock lock(Own().mutex);
  const OwnMappings::List at = Own().Within(address, 1);
  if (at.empty() || !at.front().IsRange() || at.front().memory->stays) return call();
  const bool is_its_own = location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                          location->id == JobOf(at.front().memory)->device();
  *flags = is_its_own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult FreeAddresses(CUdeviceptr base, size_t bytes) {
  const auto call = [&] { return Driver().cuMemAddressFree(base, bytes); };
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const base::MutexLock lock(Own().mutex);
  if (!Own().Within(base, bytes).empty()) return CUDA_ERROR_INVALID_VALUE;
  const OwnMappings::Reservation reservation = Own().ReservationOf(base);
  if (reservation.bytes == 0) return call();
  if (reservation.base != base || reservation.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Driver().cuMemAddressFree(base - reservation.guard_bytes,
                                                    bytes + 2 * reservation.guard_bytes);
  if (result == CUDA_SUCCESS) Own().Unreserved(base);
  return result;
}

// With guards, unless the driver then has no such addresses, or others than the program wishes.
CUresult Reserve(CUdeviceptr* base, size_t bytes, size_t alignment_bytes, CUdeviceptr wish,
                 unsigned long long flags) {
  const auto call = [&] {
    return Driver().cuMemAddressReserve(base, bytes, alignment_bytes, wish, flags);
  };
  const ReentryGuard guard;
  const size_t guard_bytes = std::max(alignment_bytes, kGranuleBytes);
  const bool has_guards = base && bytes > 0 && bytes < kAddresses &&
                          guard_bytes <= kLargestGuardBytes && (!wish || wish > guard_bytes);
  if (!guard.IsOutermost() || !has_guards) return call();
  CUdeviceptr reserved = 0;
  const CUresult result = Driver().cuMemAddressReserve(
      &reserved, bytes + 2 * guard_bytes, alignment_bytes, wish ? wish - guard_bytes : 0, flags);
  if (result != CUDA_SUCCESS) return call();
  if (wish && reserved + guard_bytes != wish) {
    Driver().cuMemAddressFree(reserved, bytes + 2 * guard_bytes);
    return call();
  }
  *base = reserved + guard_bytes;
  const base::MutexLock lock(Own().mutex);
  Own().Reserved({.bytes = bytes, .guard_bytes = guard_bytes, .base = *base});
  return CUDA_SUCCESS;
}

CUresult PropertiesOf(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  const auto call = [&] {
    return Driver().cuMemGetAllocationPropertiesFromHandle(properties, handle);
  };
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !properties) return call();
  const base::MutexLock lock(Own().mutex);
  const Memory* const memory = Own().Find(handle);
  if (!memory) return call();
  if (!memory->range)
    return Driver().cuMemGetAllocationPropertiesFromHandle(properties, memory->real);
  *properties = memory->properties;
  return CUDA_SUCCESS;
}

// Others use these addresses, or what the driver makes of them, unseen.
template <class Call>
CUresult WithAddressesThatStay(CUdeviceptr base, size_t bytes, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  for (const Mapping& mapping : Own().Within(base, bytes)) {
    CUmemGenericAllocationHandle real = 0;
    const CUresult result = StaysForGood(mapping.memory, &real);
    if (result != CUDA_SUCCESS) return result;
  }
  return call();
}

template <class Call>
CUresult MapArrays(CUarrayMapInfo* list, unsigned int count, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !list) return call(list);
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  std::vector<CUarrayMapInfo> with_real(list, list + count);
  for (CUarrayMapInfo& info : with_real) {
    Memory* const memory = Own().Find(info.memHandle.memHandle);
    if (!memory) continue;
    const CUresult result = StaysForGood(memory, &info.memHandle.memHandle);
    if (result != CUDA_SUCCESS) return result;
  }
  return call(with_real.data());
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;

SPILLWAY_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                     const CUmemAllocationProp* properties,
                                     unsigned long long flags) {
  return spillway::entry::Create(handle, bytes, properties, flags);
}

SPILLWAY_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return spillway::entry::Release(handle);
}

SPILLWAY_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                     void* address) {
  return spillway::entry::Retain(handle, reinterpret_cast<CUdeviceptr>(address));
}

SPILLWAY_EXPORT CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t offset_bytes,
                                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return spillway::entry::Map(base, bytes, offset_bytes, handle, flags);
}

SPILLWAY_EXPORT CUresult cuMemUnmap(CUdeviceptr base, size_t bytes) {
  return spillway::entry::Unmap(base, bytes);
}

SPILLWAY_EXPORT CUresult cuMemSetAccess(CUdeviceptr base, size_t bytes,
                                        const CUmemAccessDesc* accesses, size_t count) {
  const CUresult result = spillway::entry::SetAccess(base, bytes, accesses, count);
  return spillway::entry::LetsOthersIn(accesses, count) ? spillway::entry::MarkVisibleIf(result)
                                                        : result;
}

SPILLWAY_EXPORT CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                        CUdeviceptr address) {
  return spillway::entry::GetAccess(flags, location, address);
}

SPILLWAY_EXPORT CUresult cuMemAddressReserve(CUdeviceptr* base, size_t bytes,
                                             size_t alignment_bytes, CUdeviceptr wish,
                                             unsigned long long flags) {
  return spillway::entry::Reserve(base, bytes, alignment_bytes, wish, flags);
}

SPILLWAY_EXPORT CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes) {
  return spillway::entry::FreeAddresses(base, bytes);
}

SPILLWAY_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  return spillway::entry::PropertiesOf(properties, handle);
}

SPILLWAY_EXPORT CUresult cuMemExportToShareableHandle(void* out,
                                                      CUmemGenericAllocationHandle handle,
                                                      CUmemAllocationHandleType type,
                                                      unsigned long long flags) {
  const auto call = [&](CUmemGenericAllocationHandle real) {
    return Driver().cuMemExportToShareableHandle(out, real, type, flags);
  };
  return spillway::entry::MarkVisibleIf(spillway::entry::WithRealHandle(handle, call));
}

SPILLWAY_EXPORT CUresult cuMemGetHandleForAddressRange(void* out, CUdeviceptr base, size_t bytes,
                                                       CUmemRangeHandleType type,
                                                       unsigned long long flags) {
  const auto call = [&] {
    return Driver().cuMemGetHandleForAddressRange(out, base, bytes, type, flags);
  };
  return spillway::entry::MarkVisibleIf(spillway::entry::WithAddressesThatStay(base, bytes, call));
}

SPILLWAY_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast,
                                            size_t multicast_offset_bytes,
                                            CUmemGenericAllocationHandle handle,
                                            size_t offset_bytes, size_t bytes,
                                            unsigned long long flags) {
  return spillway::entry::WithRealHandle(handle, [&](CUmemGenericAllocationHandle real) {
    return Driver().cuMulticastBindMem(multicast, multicast_offset_bytes, real, offset_bytes, bytes,
                                       flags);
  });
}

SPILLWAY_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast,
                                             size_t multicast_offset_bytes, CUdeviceptr base,
                                             size_t bytes, unsigned long long flags) {
  return spillway::entry::WithAddressesThatStay(base, bytes, [&] {
    return Driver().cuMulticastBindAddr(multicast, multicast_offset_bytes, base, bytes, flags);
  });
}

SPILLWAY_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count,
                                            CUstream stream) {
  return spillway::entry::MapArrays(list, count, [&](CUarrayMapInfo* real) {
    return Driver().cuMemMapArrayAsync(real, count, stream);
  });
}

SPILLWAY_EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count,
                                                 CUstream stream) {
  return spillway::entry::MapArrays(list, count, [&](CUarrayMapInfo* real) {
    return Driver().cuMemMapArrayAsync_ptsz(real, count, stream);
  });
}
