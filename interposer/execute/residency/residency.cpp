#include "interposer/execute/residency/residency.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"
#include "interposer/execute/state/touch_clock.h"

namespace spillway::interposer {

Residency::Residency(int device, size_t budget_bytes, size_t host_limit_bytes, bool may_park,
                     Timeline* timeline, Counters* counters, JobTrace* trace)
    : timeline_(timeline),
      counters_(counters),
      trace_(trace),
      chunks_(device, budget_bytes, PromisesShareableMemory(device)),
      mappings_(device),
      uses_(timeline),
      copies_(device, host_limit_bytes, may_park, timeline, counters, trace),
      checks_(timeline, counters),
      parked_(&mappings_, &copies_, &uses_, timeline, counters),
      freed_({.ranges = &ranges_,
              .mappings = &mappings_,
              .chunks = &chunks_,
              .parked = &parked_,
              .uses = &uses_,
              .timeline = timeline,
              .counters = counters}),
      departures_({.ranges = &ranges_,
                   .chunks = &chunks_,
                   .copies = &copies_,
                   .checks = &checks_,
                   .parked = &parked_,
                   .uses = &uses_,
                   .freed = &freed_,
                   .layout = &layout_,
                   .timeline = timeline,
                   .counters = counters,
                   .trace = trace}),
      laid_out_({.layout = &layout_,
                 .chunks = &chunks_,
                 .parked = &parked_,
                 .freed = &freed_,
                 .departures = &departures_,
                 .timeline = timeline}),
      spare_(&chunks_, &freed_, counters) {}

Range* Residency::NewRange(size_t bytes) {
  const size_t size_bytes = RoundUp(bytes, kGranuleBytes);
  Range* range = NewLaidOut(size_bytes);
  const bool is_laid_out = range != nullptr;
  if (!range) range = freed_.Reuse(size_bytes);
  if (range && range->place == Place::kDevice)
    laid_out_.Took(range, IterationLayout::Take::kNew, is_laid_out);
  if (!range) {
    const CUdeviceptr base = mappings_.TakeAddresses(size_bytes);
    if (!base) return nullptr;
    range = ranges_.Add(base, size_bytes);
  }
  if (range->place == Place::kNowhere) Restore(range);
  range->requested_bytes = bytes;
  range->holds_addresses = false;
  range->last_touch = TouchClock();
  if (range->ready_after.empty()) RangeUses::OpenFastPath(range, 0);
  spare_.NoteAllocation(size_bytes);
  return range;
}

std::vector<Range*> Residency::NewParts(CUdeviceptr base, size_t bytes, size_t part_bytes) {
  std::vector<Range*> parts;
  for (size_t begin = 0; begin < bytes; begin += part_bytes) {
    const size_t of_part = std::min(part_bytes, bytes - begin);
    Range* const part = ranges_.Add(base + begin, RoundUp(of_part, kGranuleBytes));
    part->part_place = begin + of_part < bytes ? PartPlace::kInner : PartPlace::kLast;
    part->requested_bytes = of_part;
    part->holds_addresses = false;
    part->last_touch = TouchClock();
    Restore(part);
    parts.push_back(part);
  }
  spare_.NoteAllocation(bytes);
  return parts;
}

bool Residency::MustAwaitLaidOut(size_t size_bytes) {
  Chunks chunks;
  return laid_out_.Find(IterationLayout::Take::kNew, size_bytes, &chunks) ==
         LaidOutMemory::Answer::kComing;
}

// Null when the layout has nothing for it that is there.
Range* Residency::NewLaidOut(size_t size_bytes) {
  Chunks chunks;
  const auto answer = laid_out_.Find(IterationLayout::Take::kNew, size_bytes, &chunks);
  if (answer != LaidOutMemory::Answer::kThere) return nullptr;
  if (Range* const range = freed_.ReuseMappedOnto(size_bytes, chunks)) return range;
  const CUdeviceptr base = mappings_.TakeAddresses(size_bytes);
  if (!base) return nullptr;
  const FreedMemory::Taken taken = freed_.TakeAll(chunks);
  if (!mappings_.Map(base, chunks)) {
    freed_.PutBack(taken);
    mappings_.GiveAddresses(base, size_bytes);
    return nullptr;
  }
  Range* const range = ranges_.Add(base, size_bytes);
  range->NoteMapped(std::move(chunks));
  range->place = Place::kDevice;
  range->ready_after.Merge(taken.ready_after);
  range->ordered.clear();
  return range;
}

void Residency::Free(Range* range, const UseList& busy) {
  uses_.CloseFastPath(range);
  departures_.NoteUnusedPrefetch(range);
  if (range->place == Place::kLeaving) departures_.Forget(range);
  const bool parked = range->place == Place::kParked;
  const bool on_device = IsMapped(range);
  if (on_device) layout_.Gave(*range, IterationLayout::Why::kFreed);
  range->residence = {};
  range->uses.Merge(range->departure);
  if (!parked) copies_.Give(range);
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

Range* Residency::Adopt(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle,
                        const OwnMemoryKind& kind) {
  Range* const range = ranges_.Add(base, bytes);
  range->BeginLife();
  range->is_mapping = range->is_own = true;
  range->own_kind = kind;
  range->NoteMapped({chunks_.Adopt(handle, bytes)});
  range->place = Place::kDevice;
  range->requested_bytes = bytes;
  range->holds_addresses = false;
  range->last_touch = TouchClock();
  range->ready_after.Clear();
  range->ordered.clear();
  RangeUses::OpenFastPath(range, 0);
  return range;
}

bool Residency::Relocate(Range* range, CUdeviceptr to) {
  const CUdeviceptr from = range->base;
  const CUdeviceptr target = to ? to : mappings_.TakeAddresses(range->size_bytes);
  if (!target) return false;
  if (!MapElsewhere(range, target)) {
    if (!to) mappings_.GiveAddresses(target, range->size_bytes);
    return false;
  }
  if (!range->is_mapping) mappings_.GiveAddresses(from, range->size_bytes);
  range->base = target;
  range->is_mapping = to != 0;
  return true;
}

// What fails leaves the range as it was: a handle may be mapped twice.
bool Residency::MapElsewhere(Range* range, CUdeviceptr to) {
  if (range->place == Place::kParked) parked_.Unmap(range);
  if (!IsMapped(range)) return true;
  if (!mappings_.Map(to, range->chunks, Mappings::Users::kDevice)) return false;
  driver::MemUnmap(range->base, range->size_bytes);
  return true;
}

CUmemGenericAllocationHandle Residency::Disown(Range* range) {
  if (range->place == Place::kLeaving) departures_.Cancel(range);
  CUmemGenericAllocationHandle handle = 0;
  if (IsMapped(range)) {
    if (!range->is_mapping) driver::MemUnmap(range->base, range->size_bytes);
    for (Chunk* chunk : range->NoteUnmapped()) {
      handle = chunk->handle;
      chunks_.Disown(chunk);
    }
  } else {
    handle = MakeForProgram(range);
  }
  Forget(range);
  return handle;
}

// With the bytes in the host copy. They are put there at addresses of ours, if need be.
CUmemGenericAllocationHandle Residency::MakeForProgram(Range* range) {
  if (range->place == Place::kParked) parked_.Unmap(range);
  if (range->place == Place::kDropped || !copies_.spilled().LoadNow(range)) return 0;
  const CUmemGenericAllocationHandle handle =
      chunks_.MakeForProgram(range->size_bytes, range->own_kind);
  Chunk whole{.handle = handle, .bytes = range->size_bytes};
  if (!handle || !mappings_.Map(range->base, {&whole}, Mappings::Users::kDevice)) return handle;
  if (range->host.data)
    driver::Driver().cuMemcpyHtoD_v2(range->base, range->host.data, range->size_bytes);
  if (!range->is_mapping) driver::MemUnmap(range->base, range->size_bytes);
  return handle;
}

void Residency::End(Range* range) {
  if (range->place == Place::kParked) parked_.Unmap(range);
  if (IsMapped(range)) GiveMemory(range);
  Forget(range);
}

// It has no memory any more.
void Residency::Forget(Range* range) {
  uses_.CloseFastPath(range);
  layout_.Gave(*range, IterationLayout::Why::kFreed);
  copies_.Give(range);
  if (!range->is_mapping)
    mappings_.GiveAddresses(range->base, range->size_bytes, range->part_place == PartPlace::kInner);
  ranges_.Remove(range);
  range->Retire();
}

void Residency::Pin(Range* range) {
  ++range->pins;
  if (range->place == Place::kLeaving) departures_.Cancel(range);
}

void Residency::Used(Range* range, Use use, bool may_write) {
  range->last_touch = TouchClock();
  if (std::exchange(range->prefetched, false)) {
    ++counters_->prefetch_hits;
    TraceNow(trace_, TraceKind::kPrefetchHit, range);
  }
  range->empty = false;
  (range->live ? range->uses : range->ready_after).Add(use);
  if (range->place == Place::kParked && !parking())
    timeline_->EventFor(use);  // MayUnpark waits for it
  const bool outdates =
      may_write && range->place != Place::kParked;  // parked, the host's bytes are the range's own
  if (outdates && ordering_rules::kTouchOutdatesHostCopy) copies_.Give(range);
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
    if (ordering_rules::kUseFollowsRestore || !copies_.IsRestore(use)) {
      timeline_->OrderAfter(user, use);
    }
  }
  ordered.push_back(stream);
}

// Another thread may have freed a range that a call names.
bool Residency::Restore(Range* range, TraceCause why, Content content) {
  if (range->live) return GiveBytes(range, why, content);
  freed_.Remove(range);
  const bool restored = GiveBytes(range, why, content);
  freed_.Add(range);
  return restored;
}

bool Residency::GiveBytes(Range* range, TraceCause why, Content content) {
  if (range->place == Place::kDropped) return false;
  if (range->place == Place::kParked && !parked_.MayUnpark(range)) return false;
  const bool is_new = range->place == Place::kNowhere;
  const bool is_first = is_new && !range->is_own;
  if (!(is_first ? GiveFirstMemory(range) : GiveIdleMemory(range))) return false;
  if (range->place == Place::kHost && content == Content::kDead && !parking()) {
    range->empty = true;
    counters_->overwritten_bytes += range->requested_bytes;
  } else if (range->place == Place::kHost && !copies_.In(range, why)) {
    GiveMemory(range);
    return false;
  }
  range->place = Place::kDevice;
  if (parking()) copies_.Give(range);
  TraceMemory();
  return true;
}

void Residency::Fill(Range* range) {
  const bool has_bytes = range->host.data || range->spilled;
  if (!std::exchange(range->empty, false) || !has_bytes) return;
  copies_.In(range, TraceCause::kDemand);
  if (parking()) copies_.Give(range);
}

bool Residency::GiveDroppedMemory(Range* range) {
  if (!GiveIdleMemory(range)) return false;
  range->place = Place::kDevice;
  TraceMemory();
  return true;
}

bool Residency::ParkDropped(Range* range) {
  const bool is_parked = parked_.ParkNew(range);
  if (!is_parked) range->place = Place::kDropped;
  return is_parked;
}

void Residency::DropAgain(Range* range) {
  range->place == Place::kParked ? parked_.Discard(range) : GiveMemory(range);
  range->place = Place::kDropped;
}

// Layouts have no memory of the program's own kind.
bool Residency::TakeIdleMemory(Range* range, bool* is_laid_out, Chunks* chunks) {
  if (range->is_own) return TakeWhole(*range, chunks);
  const auto answer = laid_out_.Find(IterationLayout::Take::kRestore, range->size_bytes, chunks);
  *is_laid_out = answer == LaidOutMemory::Answer::kThere;
  if (answer == LaidOutMemory::Answer::kComing) return false;
  if (*is_laid_out) {
    freed_.TakeAll(*chunks);
    return true;
  }
  chunks->clear();
  return TakeChunks(range->size_bytes, chunks);
}

bool Residency::TakeWhole(const Range& range, Chunks* out) {
  CollectFinished();
  while (!chunks_.TakeWhole(range.size_bytes, range.own_kind, out)) {
    if (!freed_.YieldIdle()) return false;
  }
  return true;
}

bool Residency::GiveIdleMemory(Range* range) {
  Chunks chunks;
  bool is_laid_out = false;
  if (!TakeIdleMemory(range, &is_laid_out, &chunks)) return false;
  if (range->place == Place::kParked) parked_.Unmap(range);
  const auto users = range->is_own ? Mappings::Users::kDevice : Mappings::Users::kDeviceAndPeers;
  if (!mappings_.Map(range->base, chunks, users)) {
    chunks_.Give(&chunks);
    return false;
  }
  range->NoteMapped(std::move(chunks));
  laid_out_.Took(range, IterationLayout::Take::kRestore, is_laid_out);
  return true;
}

bool Residency::GiveFirstMemory(Range* range) {
  Chunks chunks;
  if (!MapFirst(range->base, range->size_bytes, &chunks, &range->ready_after)) return false;
  range->NoteMapped(std::move(chunks));
  range->ordered.clear();
  laid_out_.Took(range, IterationLayout::Take::kNew, false);
  return true;
}

CUdeviceptr Residency::MapNew(size_t bytes, Chunks* chunks, UseList* ready_after) {
  const CUdeviceptr base = mappings_.TakeAddresses(bytes);
  if (base && MapFirst(base, bytes, chunks, ready_after)) return base;
  if (base) mappings_.GiveAddresses(base, bytes);
  return 0;
}

// Nobody has used these addresses yet. So nobody need wait here for work on their memory: its users
// will.
bool Residency::MapFirst(CUdeviceptr base, size_t bytes, Chunks* chunks, UseList* ready_after) {
  FreedMemory::Taken of_freed;
  Chunks of_pool;
  if (!TakeForNew(bytes, &of_freed, &of_pool)) return false;
  *chunks = of_freed.chunks;
  chunks->insert(chunks->end(), of_pool.begin(), of_pool.end());
  if (!mappings_.Map(base, *chunks)) {
    chunks->clear();
    chunks_.Give(&of_pool);
    freed_.PutBack(of_freed);
    return false;
  }
  ready_after->Merge(of_freed.ready_after);
  return true;
}

void Residency::GiveMemory(Range* range) {
  layout_.Gave(*range, IterationLayout::Why::kMoves);
  driver::MemUnmap(range->base, range->size_bytes);
  Chunks chunks = range->NoteUnmapped();
  chunks_.Give(&chunks);
}

const void* Residency::HostCopy(Range* range) {
  const bool is_there =
      range->place == Place::kHost || range->place == Place::kParked || range->empty;
  return is_there && copies_.spilled().LoadNow(range) ? range->host.data : nullptr;
}

bool Residency::SetParking(bool parking) {
  if (parking && !parked_.is_on()) departures_.CancelAll();
  return parked_.Set(parking, ranges_);
}

void Residency::SetPeer(CUdevice peer, bool allowed) {
  mappings_.SetPeer(peer, allowed);
  for (const auto& range : ranges_.all()) {
    if (range->is_own) continue;
    if (IsMapped(range.get()) || range->place == Place::kParked)
      Mappings::SetPeerAt(range->base, range->size_bytes, peer, allowed);
  }
}

bool Residency::TakeChunks(size_t bytes, Chunks* out) {
  spare_.BeforeTaking(bytes);
  const size_t held_bytes = chunks_.held_bytes();
  const bool taken = TakeAny(bytes, out);
  spare_.Took(held_bytes);
  return taken;
}

// What the layout has for others comes last.
bool Residency::TakeAtOnce(size_t bytes, Chunks* out) {
  return chunks_.TakeBesidePieces(bytes, out) || chunks_.Take(bytes, out, Cutting::kNo);
}

// Freed ranges keep their memory where they would not be enough without cutting other chunks.
bool Residency::TakeForNew(size_t bytes, FreedMemory::Taken* of_freed, Chunks* chunks) {
  spare_.BeforeTaking(bytes);
  const size_t held_bytes = chunks_.held_bytes();
  bool is_taken = TakeAtOnce(bytes, chunks);
  if (!is_taken) {
    CollectFinished();
    is_taken = TakeWithFreed(bytes, Cutting::kNo, of_freed, chunks) || TakeAny(bytes, chunks) ||
               TakeWithFreed(bytes, Cutting::kYes, of_freed, chunks);
  }
  spare_.Took(held_bytes);
  return is_taken;
}

bool Residency::TakeWithFreed(size_t bytes, Cutting cutting, FreedMemory::Taken* of_freed,
                              Chunks* chunks) {
  if (freed_.PendingBytes() + chunks_.ObtainableBytes() < bytes) return false;
  *of_freed = freed_.Take(bytes);
  if (chunks_.Take(bytes - of_freed->bytes, chunks, cutting)) return true;
  freed_.PutBack(std::exchange(*of_freed, {}));
  return false;
}

// Freed ranges hold their memory for reuse until it is needed: for its amount, or because chunks at
// hand would have to be cut (Note [Cutting and merging]). Idle ones yield it where all of them
// together would do. None is waited for.
bool Residency::TakeAny(size_t bytes, Chunks* out) {
  if (TakeAtOnce(bytes, out)) return true;
  CollectFinished();
  while (!chunks_.Take(bytes, out, Cutting::kNo)) {
    const size_t missing_bytes = bytes - std::min(bytes, chunks_.ObtainableBytes());
    const size_t to_cut_bytes = chunks_.BytesToCut(bytes);
    if (missing_bytes > 0) {
      if (!freed_.IdleBytesReach(missing_bytes) || !freed_.YieldIdle()) return false;
    } else if (!freed_.IdleBytesReach(to_cut_bytes, to_cut_bytes) ||
               !freed_.YieldIdle(to_cut_bytes)) {
      return chunks_.Take(bytes, out, Cutting::kYes);
    }
  }
  return true;
}

bool Residency::Charge(size_t bytes) {
  if (chunks_.Charge(bytes)) return true;
  CollectFinished();
  while (!chunks_.Charge(bytes)) {
    if (!freed_.YieldIdle()) return false;
  }
  return true;
}

void Residency::CollectFinished() {
  CollectLeft();
  freed_.RetireUnmapped();
}

void Residency::CollectLeft() {
  timeline_->Poll();
  departures_.Collect();
}

FirstUses Residency::NextToAwait() {
  FirstUses first;
  freed_.AddNextTo(&first);
  departures_.AddNextTo(&first);
  return first;
}

void Residency::UnmapAndGive(CUdeviceptr base, size_t bytes, Chunks* chunks) {
  driver::MemUnmap(base, bytes);
  chunks_.Give(chunks);
  mappings_.GiveAddresses(base, bytes);
}

std::vector<Range*> Residency::LiveRanges() {
  std::vector<Range*> live;
  ForEachLive([&](Range* range) { live.push_back(range); });
  return live;
}

void Residency::TraceMemoryNow() {
  const auto signed_of = [](size_t bytes) { return static_cast<std::int64_t>(bytes); };
  trace_->Now({.kind = TraceKind::kMemory,
               .values = {signed_of(chunks_.held_bytes()), signed_of(chunks_.budget_bytes()),
                          signed_of(counters_->wanted_bytes), signed_of(host().pinned_bytes())}});
}

// All ranges are unmapped before any of their memory goes to the driver.
void Residency::ReleaseAll() {
  Chunks held;
  for (const auto& range : ranges_.all()) {
    range->fast_path.Close();
    if (IsMapped(range.get()) || range->place == Place::kParked)
      driver::MemUnmap(range->base, range->size_bytes);
    host().Give(&range->host);
    copies_.spilled().Drop(range.get());
    const Chunks its_own = range->NoteUnmapped();
    held.insert(held.end(), its_own.begin(), its_own.end());
  }
  chunks_.Give(&held);
  CUdeviceptr base = 0;
  Chunks chunks = checks_.TakeMemory(&base);
  if (base) UnmapAndGive(base, kGranuleBytes, &chunks);
  ranges_.Clear();
  departures_.Clear();
  freed_.Clear();
  chunks_.ReleaseAll();
  host().ReleaseAll();
  mappings_.ReleaseAll();
}

}  // namespace spillway::interposer
