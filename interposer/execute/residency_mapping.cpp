// Mappings: device memory at a range's addresses, for which devices, and host memory in its place.
#include <algorithm>
#include <cstring>
#include <utility>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/execute/residency.h"

namespace spillway::interposer {

bool Residency::Map(CUdeviceptr base, const Chunks& chunks) {
  size_t done_bytes = 0;
  for (const Chunk& chunk : chunks) {
    if (driver::MemMap(base + done_bytes, chunk.bytes, chunk.handle) != CUDA_SUCCESS) break;
    done_bytes += chunk.bytes;
  }
  size_t wanted_bytes = 0;
  for (const Chunk& chunk : chunks) wanted_bytes += chunk.bytes;
  if (done_bytes == wanted_bytes && AllowDevice(base, done_bytes)) return true;
  if (done_bytes) driver::MemUnmap(base, done_bytes);
  return false;
}

bool Residency::AllowDevice(CUdeviceptr base, size_t bytes) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (driver::MemSetAccess(base, bytes, &access, 1) != CUDA_SUCCESS) return false;
  for (const CUdevice peer : peers_) SetPeerAt(base, bytes, peer, true);
  return true;
}

void Residency::SetPeerAt(CUdeviceptr base, size_t bytes, CUdevice peer, bool allowed) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, peer};
  access.flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  driver::MemSetAccess(base, bytes, &access, 1);
}

void Residency::SetPeer(CUdevice peer, bool allowed) {
  std::erase(peers_, peer);
  if (allowed) peers_.push_back(peer);
  for (const auto& range : ranges_) {
    if (IsMapped(range.get()) || range->place == Place::kParked)
      SetPeerAt(range->base, range->size_bytes, peer, allowed);
  }
}

CUdeviceptr Residency::MapAnew(size_t bytes, const Chunks& chunks) {
  const CUdeviceptr base = addresses_.Take(bytes);
  if (!base) return 0;
  if (Map(base, chunks)) return base;
  addresses_.Give(base, bytes);
  return 0;
}

void Residency::UnmapAndGive(CUdeviceptr base, size_t bytes, Chunks* chunks) {
  driver::MemUnmap(base, bytes);
  chunks_.Give(chunks);
  addresses_.Give(base, bytes);
}

bool Residency::SetParking(bool parking) {
  bool all_mapped = true;
  host_.MustMap(parking);
  if (parking && !parking_) {
    CancelLeaving();
    for (const auto& range : ranges_) {
      if (range->empty)
        continue;  // the call that overwrites it may be enqueued: a copy now could come after it
      if (range->live && range->place == Place::kDevice) GiveHostCopy(range.get());
      if (range->live && range->place == Place::kNowhere) all_mapped &= ParkNew(range.get());
      if (range->place == Place::kHost) all_mapped &= Park(range.get());
    }
  }
  parking_ = parking;
  return all_mapped;
}

bool Residency::ParkNew(Range* range) {
  if (!host_.TakeMappable(range->size_bytes, &range->host)) return false;
  range->place = Place::kHost;
  if (Park(range)) return true;
  range->place = Place::kNowhere;
  GiveHostCopy(range);
  return false;
}

// Its host memory cannot be mapped at device addresses: it is in a slab of the agent's, say.
bool Residency::MakeMappable(Range* range) {
  HostBuffer mappable;
  if (!host_.TakeMappable(range->size_bytes, &mappable)) return false;
  std::memcpy(mappable.data, range->host.data, range->requested_bytes);
  std::swap(range->host, mappable);
  host_.Give(&mappable);
  return true;
}

bool Residency::Park(Range* range) {
  if (!range->host.handle && !MakeMappable(range)) return false;
  if (driver::MemMap(range->base, range->size_bytes, range->host.handle) != CUDA_SUCCESS)
    return false;
  if (!AllowDevice(range->base, range->size_bytes)) {
    driver::MemUnmap(range->base, range->size_bytes);
    return false;
  }
  range->place = Place::kParked;
  counters_->parked_bytes += range->size_bytes;
  counters_->parked_peak_bytes = std::max(counters_->parked_peak_bytes, counters_->parked_bytes);
  return true;
}

bool Residency::ParkForCall(Range* range) {
  range->serves_parked = true;
  if (range->place == Place::kHost) return Park(range);
  return range->place == Place::kParked || (range->place == Place::kNowhere && ParkNew(range));
}

bool Residency::MayUnpark(Range* range) {
  if (parking_ || !ordering_rules::kUnparkWaitsForUses) return true;
  const bool is_kept = range->entered > 0 || range->holds > 0 || range->unmovable != Unmovable::kNo;
  return !is_kept && timeline_->AllDone(&range->uses) && timeline_->AllDone(&range->ready_after);
}

bool Residency::StaysParked(Range* range) {
  if (range->place != Place::kParked || MayUnpark(range)) return false;
  return range->holds > 0 || range->unmovable != Unmovable::kNo || IsHeld(range);
}

void Residency::Unpark(Range* range) {
  driver::MemUnmap(range->base, range->size_bytes);
  counters_->parked_bytes -= range->size_bytes;
  range->place = Place::kNowhere;
  GiveHostCopy(range);
}

}  // namespace spillway::interposer
