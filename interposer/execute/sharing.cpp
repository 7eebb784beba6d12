#include "interposer/execute/sharing.h"

#include <unistd.h>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/call_scope.h"
#include "interposer/execute/state/arena.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

// The owner of the hold on what peers may use. No handle has this bit.
std::uint64_t PeersHoldOf(CUdeviceptr address) { return address | (std::uint64_t{1} << 63); }

void CloseAll(SharedMemory* memory) {
  for (const SharedMemory::Chunk& chunk : memory->chunks) close(chunk.file);
  memory->chunks.clear();
}

CUresult Export(const Chunks& chunks, SharedMemory* out) {
  for (Chunk* chunk : chunks) {
    int file = -1;
    const CUresult result = Driver().cuMemExportToShareableHandle(
        &file, chunk->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS) {
      CloseAll(out);
      return result;
    }
    chunk->is_shared = true;
    out->chunks.push_back({file, chunk->bytes});
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Sharing::AllowPeer(CUdevice peer) {
  state_.budget.Await([this]() SPILLWAY_REQUIRES(kStateLock) {
    return state_.counters.wanted_bytes <= state_.budget.bytes();
  });
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  {
    const StateLock lock(state_.locks);
    if (state_.counters.wanted_bytes > state_.budget.bytes())
      return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    SetPeer(peer, true);
  }
  if (replays_.EndRecordsWhileMaking() && restores_.RestoreAll()) return CUDA_SUCCESS;
  const StateLock lock(state_.locks);
  SetPeer(peer, false);
  return state_.OutOfMemory();
}

void Sharing::DenyPeer(CUdevice peer) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  SetPeer(peer, false);
}

// A peer may write what a host copy holds and what records read.
CUresult Sharing::AllowPeerAt(CUdeviceptr address, CUdevice peer) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  if (!replays_.EndRecords()) return CUDA_ERROR_OUT_OF_MEMORY;
  Addresses addresses;
  addresses.push_back(address);
  CallScope call(calls_, addresses, {}, Effect::kMayWrite);
  if (call.answer() != CUDA_SUCCESS) return call.answer();
  held_.Hold(PeersHoldOf(address), address, Unmovable::kPeers);
  const bool is_on_device = SetPeerOf(address, peer, true);
  call.End(CUDA_SUCCESS);
  if (is_on_device) return Driver().cuStreamSynchronize(nullptr);  // a peer device may use it first
  held_.EndHold(PeersHoldOf(address));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void Sharing::DenyPeerAt(CUdeviceptr address, CUdevice peer, bool is_last) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  SetPeerOf(address, peer, false);
  if (is_last) held_.EndHold(PeersHoldOf(address));
}

CUresult Sharing::Share(std::uint64_t owner, CUdeviceptr address, SharedMemory* out) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  Addresses addresses;
  addresses.push_back(address);
  CallScope call(calls_, addresses, {}, Effect::kReads);
  if (call.answer() != CUDA_SUCCESS) return call.answer();
  held_.Hold(owner, address, Unmovable::kShared);
  const CUresult result = ShareResident(address, out);
  if (result != CUDA_SUCCESS) held_.EndHold(owner);
  call.End(CUDA_SUCCESS);
  if (result == CUDA_SUCCESS &&
      !replays_.EndRecords()) {  // another process may write what they read
    held_.EndHold(owner);
    CloseAll(out);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  // The other process knows nothing of the copy that restores the bytes.
  if (result == CUDA_SUCCESS) Driver().cuStreamSynchronize(nullptr);
  return result;
}

bool Sharing::IsShareable() {
  const StateLock lock(state_.locks);
  return state_.residency.chunks().shareable();
}

void Sharing::SetPeer(CUdevice peer, bool allowed) {
  state_.residency.SetPeer(peer, allowed);
  state_.slabs.ForEachSlab(
      [&](CUdeviceptr base) { Mappings::SetPeerAt(base, kGranuleBytes, peer, allowed); });
  const int before = state_.peer_count.fetch_add(allowed ? 1 : -1, std::memory_order_relaxed);
  UnmovableBytes& kept = state_.counters.UnmovableFor(Unmovable::kPeers);
  if (allowed && before == 0) {
    peers_bytes_ = state_.counters.wanted_bytes;
    kept.Add(peers_bytes_);
  } else if (!allowed && before == 1) {
    kept.bytes -= peers_bytes_;
  }
}

// False when the allocation is not on the device: there is no room, so it is parked.
bool Sharing::SetPeerOf(CUdeviceptr address, CUdevice peer, bool allowed) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(address);
  if (!found) return false;
  if (IsBlock(found)) {
    Mappings::SetPeerAt(AsBlock(found)->slab->plan.base, kGranuleBytes, peer, allowed);
    return true;
  }
  if (ArenaOf(found) || !IsMapped(AsRange(found))) return false;
  Mappings::SetPeerAt(found->base, found->size_bytes, peer, allowed);
  return true;
}

// Parked, or larger than the budget: there is no room.
CUresult Sharing::ShareRange(const Range& range, SharedMemory* out) {
  const Allocation& whole = range.arena ? static_cast<const Allocation&>(*range.arena) : range;
  out->size_bytes = whole.requested_bytes;
  if (!range.arena && !range.chunks.empty()) return Export(range.chunks, out);
  state_.counters.NoteRefusedUnmovable(whole.requested_bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Sharing::ShareResident(CUdeviceptr address, SharedMemory* out) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.ledger.Find(address);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  if (found->kind == AllocationKind::kRange) return ShareRange(*AsRange(found), out);
  out->size_bytes = found->requested_bytes;
  Slab* const slab = AsBlock(found)->slab;
  out->offset_bytes = found->base - slab->plan.base;
  return Export(slab->chunks, out);
}

}  // namespace spillway::interposer
