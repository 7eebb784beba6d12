// Memory of the job that other processes may map: it is brought to the device and stays there.
#include <unistd.h>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

void CloseAll(SharedMemory* memory) {
  for (const SharedMemory::Chunk& chunk : memory->chunks) close(chunk.file);
  memory->chunks.clear();
}

CUresult Export(Chunks* chunks, SharedMemory* out) {
  for (Chunk& chunk : *chunks) {
    int file = -1;
    const CUresult result = Driver().cuMemExportToShareableHandle(
        &file, chunk.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS) {
      CloseAll(out);
      return result;
    }
    chunk.shared = true;
    out->chunks.push_back({file, chunk.bytes});
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult JobMemory::Share(std::uint64_t owner, CUdeviceptr address, SharedMemory* out) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  Addresses addresses;
  addresses.push_back(address);
  TouchSet set;
  const CUresult begun = Begin(addresses, {}, Effect::kReads, &set);
  if (begun != CUDA_SUCCESS) return begun;
  Hold(owner, address, Unmovable::kShared);
  const CUresult result = ShareResident(address, out);
  if (result != CUDA_SUCCESS) EndHold(owner);
  End(&set, Effect::kReads);
  if (result == CUDA_SUCCESS && !replays_.EndRecipes()) {  // another process may write what they read
    EndHold(owner);
    CloseAll(out);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  // The other process knows nothing of the copy that brings the bytes back.
  if (result == CUDA_SUCCESS) Driver().cuStreamSynchronize(nullptr);
  return result;
}

bool JobMemory::IsShareable() {
  const StateLock lock(state_.locks);
  return state_.residency.chunks().shareable();
}

CUresult JobMemory::ShareResident(CUdeviceptr address, SharedMemory* out) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.ledger.Find(address);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  out->size_bytes = found->requested_bytes;
  if (found->kind == AllocationKind::kRange) {
    Chunks& chunks = AsRange(found)->chunks;
    return chunks.empty() ? CUDA_ERROR_OUT_OF_MEMORY
                          : Export(&chunks, out);  // parked: there is no room for it
  }
  Slab* const slab = AsBlock(found)->slab;
  out->offset_bytes = found->base - slab->plan.base;
  return Export(&slab->chunks, out);
}

}  // namespace spillway::interposer
