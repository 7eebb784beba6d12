// Pools of other processes: a pool by file descriptor, and its memory by exported pointers.
//
// The descriptor is of an empty file in memory that stands for the pool. A pointer's data names
// that file too, so an importer opens no other pool's memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "simulator/driver/api/pool_handles.h"

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kPointerMagic = 0x7274702d6c6f6f70;

std::uint64_t NameOf(const Pool& pool) { return InodeOf(pool.shared_file.get()); }

void RequireFile(Pool& pool) {
  if (pool.shared_file) return;
  const std::string name = PoolFileName(pool.properties.location.id);
  pool.shared_file.Reset(memfd_create(name.c_str(), MFD_CLOEXEC));
  Require(static_cast<bool>(pool.shared_file), CUDA_ERROR_OUT_OF_MEMORY);
}

bool IsExportable(const Pool& pool) {
  return !pool.imported &&
         (pool.properties.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
}

Pool* ImportPool(Call& call, base::UniqueFd file) {
  int device = 0;
  Require(DescribePoolFile(file.get(), device));
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  Pool* const pool = MakePool(call.sim, properties, Location::kDevice);
  pool->imported = true;
  pool->shared_file = std::move(file);
  return pool;
}

CUdeviceptr ImportPointer(Call& call, Pool& pool, const ExportedMemory& memory) {
  Require(memory.magic == kPointerMagic && memory.owner == NameOf(pool));
  bool fresh = false;
  const std::uintptr_t address = call.sim.imports.Open(memory, *call.context, fresh);
  if (!fresh) return address;
  call.sim.first_uses.NoteWritten(address, memory.size_bytes);
  pool.live.emplace(address, memory.size_bytes);
  call.sim.allocations.Add({.base = address,
                            .size_bytes = memory.size_bytes,
                            .kind = AllocationKind::kOpened,
                            .context = call.context,
                            .device = call.sim.imports.DeviceOf(address),
                            .pool = &pool});
  return address;
}

void CloseAll(Imports& imports, std::uintptr_t address) {
  while (!imports.Close(address)) {
  }
}

}  // namespace

void FreeImported(Call& call, Stream* stream, std::uintptr_t address) {
  Pool* const pool = call.sim.allocations.FindBase(address)->pool;
  Require(pool != nullptr);  // memory of an IPC handle is closed, not freed
  call.sim.allocations.Remove(address);
  pool->live.erase(address);
  Imports& imports = call.sim.imports;
  if (stream == nullptr) {
    CloseAll(imports, address);
  } else {
    Operation free;
    free.name = "free";
    free.effect = [&imports, address] { CloseAll(imports, address); };
    call.Submit(*stream, std::move(free));
  }
  ForgetIfDoomedAndEmpty(call, pool);
}

}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuMemPoolExportToShareableHandle)
(void* shareable, CUmemoryPool handle, CUmemAllocationHandleType type, unsigned long long flags) {
  return WithDriver([&](Call& call) {
    Pool& pool = PoolOf(call, handle);
    Require(shareable != nullptr && flags == 0 && IsExportable(pool));
    Require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    RequireFile(pool);
    const int copy = fcntl(pool.shared_file.get(), F_DUPFD_CLOEXEC, 0);
    Require(copy >= 0, CUDA_ERROR_OUT_OF_MEMORY);
    *static_cast<int*>(shareable) = copy;
  });
}

SIM_API(cuMemPoolImportFromShareableHandle)
(CUmemoryPool* pool, void* shareable, CUmemAllocationHandleType type, unsigned long long flags) {
  return WithDriver([&](Call& call) {
    Require(pool != nullptr && flags == 0 && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    *pool = Handle(ImportPool(call, spillway::base::UniqueFd(fcntl(given, F_DUPFD_CLOEXEC, 0))));
  });
}

SIM_API(cuMemPoolExportPointer)(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  return WithContext([&](Call& call) {
    const Allocation* const allocation = call.sim.allocations.FindBase(address);
    Require(data != nullptr && allocation != nullptr && allocation->kind == AllocationKind::kPool);
    Pool& pool = *allocation->pool;
    Require(IsExportable(pool));
    RequireFile(pool);
    const ExportedMemory memory = Export(call.sim.addresses, kPointerMagic, allocation->base,
                                         allocation->size_bytes, allocation->id, NameOf(pool));
    std::memset(data->reserved, 0, sizeof data->reserved);
    std::memcpy(data->reserved, &memory, sizeof memory);
  });
}

SIM_API(cuMemPoolImportPointer)
(CUdeviceptr* address, CUmemoryPool handle, CUmemPoolPtrExportData* data) {
  return WithContext([&](Call& call) {
    Pool& pool = PoolOf(call, handle);
    Require(address != nullptr && data != nullptr && pool.imported);
    ExportedMemory memory;
    std::memcpy(&memory, data->reserved, sizeof memory);
    Require(memory.place.pid != getpid());
    *address = ImportPointer(call, pool, memory);
  });
}
