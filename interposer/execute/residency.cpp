#include "interposer/execute/residency.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/execute/touch_clock.h"

namespace spillway::interposer {

using driver::Driver;

Residency::Residency(int device, size_t budget_bytes, size_t host_limit_bytes, bool may_park,
                     Timeline* timeline, Counters* counters, JobTrace* trace)
    : device_(device),
      timeline_(timeline),
      counters_(counters),
      trace_(trace),
      chunks_(device, budget_bytes, PromisesShareableMemory(device)),
      host_(device, host_limit_bytes, may_park && driver::PromisesMappableHostMemory(device),
            timeline) {
  for (CUstream& stream : streams_) Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  to_host_ = timeline_->Of({streams_[0], false});
  to_device_ = timeline_->Of({streams_[1], false});
  to_host_->is_ours = to_device_->is_ours = true;
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
  if (range->ready_after.empty()) OpenFastPath(range, 0);
  if (gives_back_) spare_.Note(UnusedBytes() - std::min(UnusedBytes(), size_bytes));
  return range;
}

// A freed range of the same size is reused as it is: same addresses, same mapping, no driver call.
// Its former work may still run; Free left it in ready_after.
Range* Residency::ReuseFreed(size_t bytes) {
  // While parking is on, calls may use the range without naming it. These could not be ordered
  // behind its former work.
  const auto is_shared = [](const Chunk& chunk) { return chunk.shared; };
  const auto may_serve = [&](Range* freed) {
    if (std::any_of(freed->chunks.begin(), freed->chunks.end(), is_shared)) return false;
    const bool idle_only = parking_ || freed->place == Place::kParked;
    return CloseFastPath(freed) && (!idle_only || timeline_->AllDone(&freed->ready_after));
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

void Residency::BeginLife(Range* range) {
  range->live = true;
  range->empty = false;
  range->drops = false;
  range->unmovable = Unmovable::kNo;
  range->holds = 0;
  range->serves_parked = false;
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

void Residency::OpenFastPath(Range* range, std::uint64_t stream_serial) {
  const bool serves =
      ordering_rules::kRecordsCloseFastPaths && (!range->readers.empty() || range->record);
  const bool steady = range->live && range->place == Place::kDevice && !range->host.data &&
                      !range->holds_addresses && !serves;
  if (!steady) return;
  range->ready_after.empty() ? range->fast_path.OpenForAll()
                             : range->fast_path.OpenFor(stream_serial);
}

// False while a call names the range. Then the fast path is as open as before, or the call's end
// opens it. (Note [Fast path])
bool Residency::CloseFastPath(Range* range) {
  range->fast_path.Close();
  if (range->pins || calls::Names(range)) {
    if (range->ready_after.empty()) OpenFastPath(range, 0);
    return false;
  }
  NoteRecentUses(range);
  return true;
}

void Residency::NoteRecentUses(Range* range) {
  UseList* const uses = range->live ? &range->uses : &range->ready_after;
  if (!range->recent.MoveTo(uses)) uses->Merge(timeline_->Unfinished());
}

bool Residency::MayBeUsedOn(Range* range, const UseList& streams) {
  NoteRecentUses(range);
  return timeline_->AnyOn(streams, range->uses);
}

void Residency::Free(Range* range, const UseList& busy) {
  CloseFastPath(range);
  NoteUnusedPrefetch(range);
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
  range->live = range->empty = range->drops = false;
  range->fast_path.Close();
  freed_.Add(range);
}

// A copy may still use the buffer. Its next owner waits for that copy.
void Residency::GiveHostCopy(Range* range) {
  range->host.busy.Merge(range->departure);
  range->host.busy.Merge(range->ready_after);
  host_.Give(&range->host);
  range->departure.Clear();
  range->host_valid = false;
}

void Residency::Pin(Range* range) {
  ++range->pins;
  if (range->place == Place::kLeaving) CancelEviction(range);
}

void Residency::CancelEviction(Range* range) {
  leaving_.remove(range);
  range->place = Place::kDevice;
  range->uses.Merge(range->departure);
  range->host_valid = !std::exchange(range->drops, false);
  ++counters_->cancelled_evictions;
}

void Residency::Used(Range* range, Use use, bool may_write) {
  range->last_touch = TouchClock();
  if (std::exchange(range->prefetched, false)) {
    ++counters_->prefetch_hits;
    TraceNow(TraceKind::kPrefetchHit, range);
  }
  range->empty = false;
  (range->live ? range->uses : range->ready_after).Add(use);
  if (range->place == Place::kParked && !parking_)
    timeline_->EventFor(use);  // MayUnpark waits for it
  const bool outdates =
      may_write && range->place != Place::kParked;  // parked, the host's bytes are the range's own
  if (outdates && ordering_rules::kTouchOutdatesHostCopy) GiveHostCopy(range);
}

bool Residency::GiveDroppedMemory(Range* range) {
  Chunks chunks;
  if (!TakeChunks(range->size_bytes, &chunks)) return false;
  if (!Map(range->base, chunks)) {
    chunks_.Give(&chunks);
    return false;
  }
  range->chunks = std::move(chunks);
  range->place = Place::kDevice;
  TraceMemory();
  return true;
}

bool Residency::ParkDropped(Range* range) {
  const bool is_parked = ParkNew(range);
  if (!is_parked) range->place = Place::kDropped;
  return is_parked;
}

void Residency::DropAgain(Range* range) {
  if (range->place == Place::kParked) {
    Unpark(range);
  } else {
    driver::MemUnmap(range->base, range->size_bytes);
    chunks_.Give(&range->chunks);
  }
  range->place = Place::kDropped;
}

bool Residency::Restore(Range* range, TraceCause why, Content content) {
  if (range->place == Place::kDropped) return false;
  if (range->place == Place::kParked && !MayUnpark(range)) return false;
  Chunks chunks;
  if (!TakeChunks(range->size_bytes, &chunks)) return false;
  if (range->place == Place::kParked) {
    driver::MemUnmap(range->base, range->size_bytes);
    range->place = Place::kHost;
    counters_->parked_bytes -= range->size_bytes;
  }
  if (!Map(range->base, chunks)) {
    chunks_.Give(&chunks);
    return false;
  }
  range->chunks = std::move(chunks);
  if (range->place == Place::kHost && content == Content::kDead && !parking_) {
    range->empty = true;
    counters_->overwritten_bytes += range->requested_bytes;
  } else if (range->place == Place::kHost) {
    if (!CopyIn(range, why)) {
      driver::MemUnmap(range->base, range->size_bytes);
      chunks_.Give(&range->chunks);
      return false;
    }
  }
  range->place = Place::kDevice;
  if (parking_) GiveHostCopy(range);
  TraceMemory();
  return true;
}

void Residency::Fill(Range* range) {
  if (!std::exchange(range->empty, false) || !range->host.data) return;
  CopyIn(range, TraceCause::kDemand);
  if (parking_) GiveHostCopy(range);
}

void Residency::CancelLeaving() {
  while (!leaving_.empty()) {
    Range* const range = leaving_.front();
    CancelEviction(range);
    if (parking_) GiveHostCopy(range);
  }
}

Use Residency::CopyOnOwnStream(const CUDA_MEMCPY2D& copy) {
  if (Driver().cuMemcpy2DAsync_v2(&copy, streams_[0]) != CUDA_SUCCESS) return {};
  const Use use = timeline_->Issue(to_host_);
  timeline_->EventFor(use);
  return use;
}

// Without pinned memory, the driver's copy from ordinary memory is as right, but slower.
bool Residency::CopyIn(Range* range, TraceCause why) {
  host_.MakePinned(&range->host);
  range->copied_at = CountUndocumented();
  const TraceMoment begun = trace_->Begin(streams_[1]);
  if (Driver().cuMemcpyHtoDAsync_v2(range->base, range->host.data, range->requested_bytes,
                                    streams_[1]) != CUDA_SUCCESS) {
    trace_->Cancel(begun);
    return false;
  }
  trace_->End(streams_[1], begun, TraceOf(TraceKind::kCopyIn, range, why));
  const Use use = timeline_->Issue(to_device_);
  timeline_->EventFor(use);
  range->ready_after.Clear();
  range->ready_after.Add(use);
  range->ordered.clear();
  range->host_valid = true;
  counters_->restored_bytes += range->requested_bytes;
  link_.Copied(protocol::Direction::kToDevice, static_cast<std::int64_t>(range->requested_bytes));
  return true;
}

void Residency::TraceMemoryNow() {
  const auto signed_of = [](size_t bytes) { return static_cast<std::int64_t>(bytes); };
  trace_->Now({.kind = TraceKind::kMemory,
               .values = {signed_of(chunks_.held_bytes()), signed_of(chunks_.budget_bytes()),
                          signed_of(counters_->wanted_bytes), signed_of(host_.pinned_bytes())}});
}

// Freed ranges keep their mappings for reuse (ReuseFreed) until their memory is needed: for its
// amount, or because chunks at hand would have to be cut. Nothing is cut where an idle range makes
// that needless. None is waited for. (Note [Cutting])
bool Residency::TakeAny(size_t bytes, Chunks* out) {
  if (chunks_.Take(bytes, out, Cutting::kNo)) return true;
  CollectFinished();
  while (!chunks_.Take(bytes, out, Cutting::kNo)) {
    const bool enough = chunks_.ObtainableBytes() >= bytes;
    if (!RetireIdle(enough ? RetireFirst::kMostGranules : RetireFirst::kLargest))
      return enough && chunks_.Take(bytes, out, Cutting::kYes);
  }
  return true;
}

bool Residency::Charge(size_t bytes) {
  if (chunks_.Charge(bytes)) return true;
  CollectFinished();
  while (!chunks_.Charge(bytes)) {
    if (!RetireIdle(RetireFirst::kLargest)) return false;
  }
  return true;
}

// Finishes evictions, and retires freed ranges without device memory: they hold addresses only.
void Residency::CollectFinished() {
  timeline_->Poll();
  CollectLeaving();
  for (Range* range = freed_.oldest(); range;) {
    Range* const freed = std::exchange(range, FreedRanges::Younger(range));
    if (freed->place == Place::kDevice || !IsIdle(freed)) continue;
    freed_.Remove(freed);
    Retire(freed);
  }
}

bool Residency::IsIdle(Range* freed) {
  return CloseFastPath(freed) && Timeline::AllKnownDone(&freed->ready_after);
}

// A retired range must be mapped anew for the next allocation of its size, mostly in the next
// iteration. Largest first retires the fewest. Oldest first would always retire what a repeating
// iteration needs next.
bool Residency::RetireIdle(RetireFirst order) {
  const auto worth = [order](const Range* range) {
    if (range->place != Place::kDevice) return size_t{0};
    return order == RetireFirst::kLargest ? range->size_bytes : GranulesOf(range->chunks);
  };
  Range* best = nullptr;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (worth(range) > (best ? worth(best) : 0) && IsIdle(range)) best = range;
  }
  if (!best) return false;
  freed_.Remove(best);
  Retire(best);
  return true;
}

void Residency::Retire(Range* range) {
  if (range->place == Place::kDevice) {
    driver::MemUnmap(range->base, range->size_bytes);
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
  const bool is_there =
      range->place == Place::kHost || range->place == Place::kParked || range->empty;
  return is_there ? range->host.data : nullptr;
}

void Residency::ReleaseAll() {
  for (const auto& range : ranges_) {
    range->fast_path.Close();
    if (IsMapped(range.get()) || range->place == Place::kParked)
      driver::MemUnmap(range->base, range->size_bytes);
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

std::vector<Range*> Residency::LiveRanges() {
  std::vector<Range*> live;
  ForEachLive([&](Range* range) { live.push_back(range); });
  return live;
}

void Residency::OrderBehind(Tracked* memory, StreamState* user) {
  if (memory->ready_after.empty() || timeline_->AllDone(&memory->ready_after)) {
    memory->ordered.clear();
    return;
  }
  auto& ordered = memory->ordered;
  const std::uint64_t stream = Timeline::SerialOf(user);
  if (std::find(ordered.begin(), ordered.end(), stream) != ordered.end()) return;
  for (Use use : memory->ready_after.items()) {
    if (ordering_rules::kUseFollowsRestore || !IsRestore(use)) {
      timeline_->OrderAfter(user, use);
    }
  }
  ordered.push_back(stream);
}

}  // namespace spillway::interposer
