// The program's own virtual memory: its addresses and mappings (own_memory_rules.h).
#include <algorithm>
#include <utility>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/mark_visible.h"
#include "interposer/entry/own_memory_rules.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::kGranuleBytes;

constexpr size_t kLargestGuardBytes = size_t{1} << 30;
constexpr CUdeviceptr kAddresses = CUdeviceptr{1} << 48;  // what the ledger covers

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

}  // namespace
}  // namespace spillway::entry

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
