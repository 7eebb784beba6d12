#include "interposer/entry/own_memory_rules.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/unknown_functions.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::OwnMemoryKind;
using interposer::RunPiece;
using interposer::Unmovable;

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

CUresult EndRange(Memory* memory) SPILLWAY_REQUIRES(Own().mutex) {
  interposer::OwnMemory& own = JobOf(memory)->own_memory();
  const CUresult result = own.End(memory->range);
  if (result == CUDA_SUCCESS) own.EndPin(memory->handle);
  return result;
}

// A piece of a run, by what is next to it.
RunPiece PieceOf(const Mapping& mapping) SPILLWAY_REQUIRES(Own().mutex) {
  const OwnMappings::List neighbours = Own().NeighboursOf(mapping);
  if (neighbours.empty() || !interposer::ordering_rules::kRunsStay) return RunPiece::kNone;
  return std::all_of(neighbours.begin(), neighbours.end(),
                     [&](const Mapping& each) {
                       return each.IsRange() && each.memory->payer == mapping.memory->payer;
                     })
             ? RunPiece::kAmongPieces
             : RunPiece::kBesideOthers;
}

}  // namespace

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

CUresult StaysForGood(Memory* memory, CUmemGenericAllocationHandle* real) {
  if (memory->range && !memory->real) {
    const CUresult result = JobOf(memory)->own_memory().Pin(memory->handle, memory->range,
                                                            Unmovable::kShared, &memory->real);
    if (result != CUDA_SUCCESS) return result;
  }
  memory->stays = true;
  *real = memory->real;
  return CUDA_SUCCESS;
}

CUresult EndIfUnused(Memory* memory) {
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

// Memory of a second mapping stays, as does what has got any other access.
void Adopt(const Mapping& mapping) {
  Memory* const memory = mapping.memory;
  if (memory->range || memory->stays || memory->mappings > 1) return;
  const OwnMemoryKind kind = {
      .handle_type = memory->properties.requestedHandleTypes,
      .is_for_rdma = memory->properties.allocFlags.gpuDirectRDMACapable != 0};
  JobOf(memory)->own_memory().Adopt(mapping.base, mapping.bytes, memory->real, kind);
  memory->real = 0;
  memory->range = mapping.base;
}

CUresult UpdateRuns(CUdeviceptr base, size_t bytes) {
  for (const Mapping& mapping : Own().Around(base, bytes)) {
    if (!mapping.IsRange()) continue;
    const CUresult result =
        JobOf(mapping.memory)->own_memory().SetRun(mapping.base, PieceOf(mapping));
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult UnmapOne(const Mapping& mapping) {
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
  if (ends) Own().Ended(memory);
  return CUDA_SUCCESS;
}

}  // namespace spillway::entry
