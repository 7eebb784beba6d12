#include "interposer/execute/residency.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/execute/touch_clock.h"

namespace spillway::interposer {

using driver::Driver;

Residency::Residency(int device, size_t budget_bytes, size_t host_limit_bytes, bool may_park,
                     Timeline* timeline, Counters* counters)
    : device_(device),
      timeline_(timeline),
      counters_(counters),
      chunks_(device, budget_bytes, PromisesShareableMemory(device)),
      host_(device, host_limit_bytes, may_park && driver::PromisesMappableHostMemory(device), timeline) {
  for (CUstream& stream : streams_) Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  to_host_ = timeline_->Of({streams_[0], false});
  to_device_ = timeline_->Of({streams_[1], false});
}

Range* Residency::NewRange(size_t bytes) {
  const size_t size_bytes = RoundUp(bytes, kGranuleBytes);
  Range* range = ReuseFreed(size_bytes);
  if (!range) {
    const CUdeviceptr base = addresses_.Take(size_bytes);
    if (!base) return nullptr;
    range = NewObject();
    range->base = base;
    range->size_bytes = size_bytes;
  }
  if (range->place == Place::kNowhere) Restore(range);
  range->requested_bytes = bytes;
  range->holds_addresses = false;
  range->last_touch = TouchClock();
  if (range->ready_after.empty()) OpenGate(range, 0);
  return range;
}

// A freed range of the same size serves as it is: same address, same mapping, no call to the driver. Its former work
// may still run; Free left it in ready_after.
Range* Residency::ReuseFreed(size_t bytes) {
  // While parking is on, calls that do not name the range may use it: they could not be ordered behind its former work.
  const auto is_shared = [](const Chunk& chunk) { return chunk.shared; };
  const auto may_serve = [&](Range* freed) {
    if (std::any_of(freed->chunks.begin(), freed->chunks.end(), is_shared)) return false;
    const bool idle_only = parking_ || freed->place == Place::kParked;
    return CloseGate(freed) && (!idle_only || timeline_->AllDone(&freed->ready_after));
  };
  Range* const range = freed_.FindOfSize(bytes, may_serve);
  if (!range) return nullptr;
  freed_.Remove(range);
  if (range->place == Place::kParked) Unpark(range);
  if (!ordering_rules::kReuseWaitsForFree) range->ready_after.Clear();
  BeginLife(range);
  ++counters_->reused_ranges;
  return range;
}

// Nobody holds the next allocation yet.
void Residency::BeginLife(Range* range) {
  range->live = true;
  range->unmovable = Unmovable::kNo;
  range->holds = 0;
  ++range->life;
}

Range* Residency::NewObject() {
  if (idle_objects_.empty()) idle_objects_.push_back(std::make_unique<Range>());
  ranges_.push_back(std::move(idle_objects_.back()));
  idle_objects_.pop_back();
  Range* const range = ranges_.back().get();
  range->position = ranges_.size() - 1;
  return range;
}

void Residency::OpenGate(Range* range, std::uint64_t stream_serial) {
  const bool steady =
      range->live && range->place == Place::kDevice && !range->host.data && !range->holds_addresses;
  if (!steady) return;
  range->ready_after.empty() ? range->gate.OpenForAll() : range->gate.OpenFor(stream_serial);
}

// False while a call names the range; then it is as open as before, or the call's end opens it. (Note [Gates])
bool Residency::CloseGate(Range* range) {
  range->gate.Close();
  if (range->pins || calls::Names(range)) {
    if (range->ready_after.empty()) OpenGate(range, 0);
    return false;
  }
  UseList* const uses = range->live ? &range->uses : &range->ready_after;
  if (!range->recent.MoveTo(uses)) uses->Merge(timeline_->Unfinished());
  return true;
}

void Residency::Free(Range* range, const UseList& busy) {
  CloseGate(range);
  if (range->place == Place::kLeaving) leaving_.remove(range);
  const bool parked = range->place == Place::kParked;
  const bool on_device = IsMapped(range);
  range->uses.Merge(range->departure);
  if (!parked) GiveHostCopy(range);
  if (on_device || parked) {
    range->ready_after.Merge(busy);
    range->ready_after.Merge(range->uses);
  }
  range->ordered.clear();
  range->uses.Clear();
  if (!parked) range->place = on_device ? Place::kDevice : Place::kNowhere;
  range->live = false;
  range->gate.Close();
  freed_.Add(range);
}

// A copy may still read or write the buffer; whoever takes it waits for that copy.
void Residency::GiveHostCopy(Range* range) {
  range->host.busy.Merge(range->departure);
  range->host.busy.Merge(range->ready_after);
  host_.Give(&range->host);
  range->departure.Clear();
  range->host_valid = false;
}

void Residency::Pin(Range* range) {
  ++range->pins;
  if (range->place == Place::kLeaving) {
    leaving_.remove(range);
    range->place = Place::kDevice;
    range->uses.Merge(range->departure);
    range->host_valid = true;
    ++counters_->cancelled_evictions;
  }
}

void Residency::Used(Range* range, Use use, bool may_write) {
  range->last_touch = TouchClock();
  (range->live ? range->uses : range->ready_after).Add(use);
  const bool outdates =
      may_write && range->place != Place::kParked;  // parked, the host's bytes are the range's own
  if (outdates && ordering_rules::kTouchOutdatesHostCopy) GiveHostCopy(range);
}

bool Residency::Restore(Range* range) {
  Chunks chunks;
  if (!TakeChunks(range->size_bytes, &chunks)) return false;
  if (range->place == Place::kParked) {
    Driver().cuMemUnmap(range->base, range->size_bytes);
    range->place = Place::kHost;
    counters_->parked_bytes -= range->size_bytes;
  }
  if (!Map(range->base, chunks)) {
    chunks_.Give(&chunks);
    return false;
  }
  range->chunks = std::move(chunks);
  if (range->place == Place::kHost) {
    if (!CopyIn(range)) {
      Driver().cuMemUnmap(range->base, range->size_bytes);
      chunks_.Give(&range->chunks);
      return false;
    }
    ++counters_->demand_fetches;
  }
  range->place = Place::kDevice;
  if (parking_) GiveHostCopy(range);
  return true;
}

bool Residency::SetParking(bool parking) {
  bool all_mapped = true;
  if (parking && !parking_) {
    CancelLeaving();
    for (const auto& range : ranges_) {
      if (range->live && range->place == Place::kDevice) GiveHostCopy(range.get());
      if (range->live && range->place == Place::kNowhere) all_mapped &= ParkNew(range.get());
      if (range->place == Place::kHost) all_mapped &= Park(range.get());
    }
  }
  parking_ = parking;
  return all_mapped;
}

bool Residency::ParkNew(Range* range) {
  if (!host_.TakeIdle(range->size_bytes, &range->host)) return false;
  range->place = Place::kHost;
  if (Park(range)) return true;
  range->place = Place::kNowhere;
  GiveHostCopy(range);
  return false;
}

bool Residency::Park(Range* range) {
  if (!range->host.handle) return false;
  if (Driver().cuMemMap(range->base, range->size_bytes, 0, range->host.handle, 0) != CUDA_SUCCESS)
    return false;
  if (!AllowDevice(range->base, range->size_bytes)) {
    Driver().cuMemUnmap(range->base, range->size_bytes);
    return false;
  }
  range->place = Place::kParked;
  counters_->parked_bytes += range->size_bytes;
  counters_->parked_peak_bytes = std::max(counters_->parked_peak_bytes, counters_->parked_bytes);
  return true;
}

// Freed and idle: its addresses and its host memory serve others.
void Residency::Unpark(Range* range) {
  Driver().cuMemUnmap(range->base, range->size_bytes);
  counters_->parked_bytes -= range->size_bytes;
  range->place = Place::kNowhere;
  GiveHostCopy(range);
}

void Residency::CancelLeaving() {
  while (!leaving_.empty()) {
    Range* const range = leaving_.front();
    Pin(range);
    Unpin(range);
    if (parking_) GiveHostCopy(range);
  }
}

Use Residency::ReadBack(const CUDA_MEMCPY2D& copy) {
  if (Driver().cuMemcpy2DAsync_v2(&copy, streams_[0]) != CUDA_SUCCESS) return {};
  const Use use = timeline_->Issue(to_host_);
  timeline_->EventFor(use);
  return use;
}

bool Residency::CopyIn(Range* range) {
  if (Driver().cuMemcpyHtoDAsync_v2(range->base, range->host.data, range->requested_bytes, streams_[1]) !=
      CUDA_SUCCESS) {
    return false;
  }
  const Use use = timeline_->Issue(to_device_);
  timeline_->EventFor(use);
  range->ready_after.Clear();
  range->ready_after.Add(use);
  range->ordered.clear();
  range->host_valid = true;
  counters_->restored_bytes += range->requested_bytes;
  return true;
}

bool Residency::TakeChunks(size_t bytes, Chunks* out) {
  return CollectUntil([&] { return chunks_.Take(bytes, out); });
}

bool Residency::Charge(size_t bytes) {
  return CollectUntil([&] { return chunks_.Charge(bytes); });
}

// Freed ranges keep their mappings for allocations of the same size (ReuseFreed) until their memory is needed.
template <class TakeNow>
bool Residency::CollectUntil(TakeNow take_now) {
  if (take_now()) return true;
  CollectLeaving();
  while (!take_now()) {
    if (!RetireOldestIdle()) return false;
  }
  return true;
}

bool Residency::Map(CUdeviceptr base, const Chunks& chunks) {
  size_t done_bytes = 0;
  for (const Chunk& chunk : chunks) {
    if (Driver().cuMemMap(base + done_bytes, chunk.bytes, 0, chunk.handle, 0) != CUDA_SUCCESS) break;
    done_bytes += chunk.bytes;
  }
  size_t wanted_bytes = 0;
  for (const Chunk& chunk : chunks) wanted_bytes += chunk.bytes;
  if (done_bytes == wanted_bytes && AllowDevice(base, done_bytes)) return true;
  if (done_bytes) Driver().cuMemUnmap(base, done_bytes);
  return false;
}

bool Residency::AllowDevice(CUdeviceptr base, size_t bytes) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (Driver().cuMemSetAccess(base, bytes, &access, 1) != CUDA_SUCCESS) return false;
  for (const CUdevice peer : peers_) SetPeerAt(base, bytes, peer, true);
  return true;
}

void Residency::SetPeerAt(CUdeviceptr base, size_t bytes, CUdevice peer, bool allowed) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, peer};
  access.flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  Driver().cuMemSetAccess(base, bytes, &access, 1);
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
  Driver().cuMemUnmap(base, bytes);
  chunks_.Give(chunks);
  addresses_.Give(base, bytes);
}

bool Residency::StartMakingRoom(size_t bytes) {
  while (chunks_.ObtainableBytes() + PendingBytes() < bytes) {
    Range* victim = Victim([](const Range&) { return true; });
    if (!victim) return false;
    if (StartLeaving(victim)) continue;
    // No host memory for its bytes: a range whose host copy is still good leaves without any.
    victim = Victim([](const Range& range) { return range.host_valid; });
    if (!victim || !StartLeaving(victim)) return false;
  }
  return true;
}

size_t Residency::PendingBytes() const {
  size_t bytes = 0;
  for (const Range* range : leaving_) bytes += range->size_bytes;
  for (const Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range))
    bytes += range->place == Place::kDevice && !range->pins ? range->size_bytes : 0;
  return bytes;
}

template <class Accepts>
Range* Residency::LeastRecentlyUsed(Accepts accepts) {
  Range* found = nullptr;
  for (const auto& range : ranges_) {
    const bool may_leave = range->place == Place::kDevice && range->pins == 0 &&
                           range->unmovable == Unmovable::kNo && range->holds == 0 && range->live &&
                           accepts(*range);
    if (may_leave && (!found || range->last_touch < found->last_touch)) found = range.get();
  }
  return found;
}

// What waits for the program, as far as is known, would hold up the copy that takes the range away, and all behind it.
bool Residency::IsHeld(const Range* range) {
  return timeline_->AnyHeld(range->uses) || timeline_->AnyHeld(range->ready_after);
}

// Its gate is closed: no call can begin to use it without the lock. What a call names right now is in use.
template <class Accepts>
Range* Residency::Victim(Accepts accepts) {
  base::InlineVector<const Range*, 8> named;
  const auto is_named = [&](const Range& range) {
    return std::find(named.begin(), named.end(), &range) != named.end();
  };
  for (;;) {
    Range* const victim =
        LeastRecentlyUsed([&](const Range& range) { return accepts(range) && !is_named(range); });
    if (!victim || (CloseGate(victim) && !IsHeld(victim))) return victim;
    named.push_back(victim);
  }
}

// A good host copy of data that is on the device is a convenience: its buffer serves data that must leave.
bool Residency::TakeHostBuffer(Range* range) {
  if (range->host.data || host_.Take(range->size_bytes, &range->host)) return true;
  for (const auto& other : ranges_) {
    const bool spare = other->place == Place::kDevice && other->host_valid && other->pins == 0;
    if (!spare) continue;
    GiveHostCopy(other.get());
    if (host_.Take(range->size_bytes, &range->host)) return true;
  }
  for (Range* freed = freed_.oldest(); freed; freed = FreedRanges::Younger(freed)) {
    if (freed->place != Place::kParked || !IsIdle(freed)) continue;
    Unpark(freed);
    if (host_.Take(range->size_bytes, &range->host)) return true;
  }
  return false;
}

bool Residency::StartLeaving(Range* range) {
  range->departure.Clear();
  if (range->host_valid) {
    range->departure.Merge(range->uses);
    range->departure.Merge(range->ready_after);
    counters_->dropped_bytes += range->requested_bytes;
  } else if (!CopyOut(range)) {
    return false;
  }
  range->place = Place::kLeaving;
  leaving_.push_back(range);
  return true;
}

bool Residency::CopyOut(Range* range) {
  if (!TakeHostBuffer(range)) return false;
  if (ordering_rules::kHostBufferWaitsForCopy) {
    for (Use use : range->host.busy.items()) timeline_->OrderAfter(to_host_, use);
  }
  range->host.busy.Clear();
  for (Use use : range->ready_after.items()) timeline_->OrderAfter(to_host_, use);
  if (ordering_rules::kOffloadFollowsUses) {
    for (Use use : range->uses.items()) timeline_->OrderAfter(to_host_, use);
  }
  if (Driver().cuMemcpyDtoHAsync_v2(range->host.data, range->base, range->requested_bytes, streams_[0]) !=
      CUDA_SUCCESS) {
    return false;
  }
  const Use use = timeline_->Issue(to_host_);
  timeline_->EventFor(use);
  range->departure.Add(use);
  counters_->offloaded_bytes += range->requested_bytes;
  return true;
}

Use Residency::NextToAwait() {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    const bool holds_memory = range->place == Place::kDevice && range->pins == 0;
    const Use next = holds_memory ? timeline_->OneToAwait(&range->ready_after) : Use{};
    if (next.stream) return next;
  }
  for (Range* range : leaving_) {
    const Use next = timeline_->OneToAwait(&range->departure);
    if (next.stream) return next;
  }
  return host_.NextToAwait();
}

void Residency::CollectLeaving() {
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    Range* range = *it;
    if (ordering_rules::kUnmapWaitsForCompletion && !timeline_->AllDone(&range->departure)) {
      ++it;
      continue;
    }
    it = leaving_.erase(it);
    FinishLeaving(range);
  }
}

void Residency::FinishLeaving(Range* range) {
  Driver().cuMemUnmap(range->base, range->size_bytes);
  chunks_.Give(&range->chunks);
  range->place = Place::kHost;
  range->host_valid = false;
  range->departure.Clear();
  range->uses.Clear();
  range->ready_after.Clear();
  range->ordered.clear();
  ++counters_->evictions;
  if (parking_ && ordering_rules::kEvictedMemoryIsParked) Park(range);
}

bool Residency::IsIdle(Range* freed) { return CloseGate(freed) && timeline_->AllDone(&freed->ready_after); }

bool Residency::RetireOldestIdle() {
  Range* range = freed_.oldest();
  while (range && !IsIdle(range)) range = FreedRanges::Younger(range);
  if (!range) return false;
  freed_.Remove(range);
  Retire(range);
  return true;
}

void Residency::Retire(Range* range) {
  if (range->place == Place::kDevice) {
    Driver().cuMemUnmap(range->base, range->size_bytes);
    chunks_.Give(&range->chunks);
  } else if (range->place == Place::kParked) {
    Unpark(range);
  }
  addresses_.Give(range->base, range->size_bytes);
  const size_t position = range->position;
  ranges_.back()->position = position;
  std::swap(ranges_[position], ranges_.back());
  if (ordering_rules::kObjectsAreKept) idle_objects_.push_back(std::move(ranges_.back()));
  ranges_.pop_back();
  range->place = Place::kNowhere;
  BeginLife(range);
  range->ordered.clear();
}

CUresult Residency::Health() const {
  const CUresult result = Driver().cuStreamQuery(streams_[0]);
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

const void* Residency::HostCopy(const Range* range) const {
  return range->place == Place::kHost || range->place == Place::kParked ? range->host.data : nullptr;
}

void Residency::ReleaseAll() {
  for (const auto& range : ranges_) {
    range->gate.Close();
    if (IsMapped(range.get()) || range->place == Place::kParked)
      Driver().cuMemUnmap(range->base, range->size_bytes);
    host_.Give(&range->host);
    chunks_.Give(&range->chunks);
  }
  for (auto& range : ranges_) idle_objects_.push_back(std::move(range));
  ranges_.clear();
  leaving_.clear();
  freed_.Clear();
  chunks_.ReleaseAll();
  host_.ReleaseAll();
  addresses_.ReleaseAll();
}

}  // namespace spillway::interposer
