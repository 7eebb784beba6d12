#include "interposer/execute/state/host_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spillway::interposer {

// Of exactly that size: a larger buffer's rest would count against the limit, unused.
bool HostPool::Take(size_t bytes, HostBuffer* out) {
  const auto fits = [&](const HostBuffer& buffer) { return Serves(buffer, bytes); };
  return TakeFree(fits, out) || TakeFromSlab(bytes, out) || Pin(bytes, out);
}

bool HostPool::TakeIdle(size_t bytes, HostBuffer* out) {
  const auto fits = [&](HostBuffer& buffer) {
    return Serves(buffer, bytes) && timeline_->AllDone(&buffer.busy);
  };
  return TakeFree(fits, out) || TakeFromSlab(bytes, out) || Pin(bytes, out);
}

bool HostPool::TakeMappable(size_t bytes, HostBuffer* out) {
  takes_mappable_ = true;
  const bool is_taken = mappable_ && TakeIdle(bytes, out);
  takes_mappable_ = false;
  if (!is_taken || out->handle) return is_taken;
  Give(out);
  return false;
}

template <class Accepts>
bool HostPool::TakeFree(Accepts accepts, HostBuffer* out) {
  const auto at = std::find_if(free_.begin(), free_.end(), accepts);
  if (at == free_.end()) return false;
  *out = std::move(*at);
  free_.erase(at);
  return true;
}

// Free buffers of other sizes go back to their slabs before more slabs are mapped.
bool HostPool::TakeFromSlab(size_t bytes, HostBuffer* out) {
  if (NeedsMapping()) return false;
  std::byte* data = slabs_.Take(bytes);
  if (!data && slabs_.bytes() > 0) {
    UnpinIdle([&](const HostBuffer& buffer) { return slabs_.Owns(buffer.data); });
    data = slabs_.Take(bytes);
  }
  const size_t room_bytes = limit_bytes() - std::min(limit_bytes(), pinned_bytes());
  if (!data && slabs_.MapFor(bytes, room_bytes)) data = slabs_.Take(bytes);
  if (!data) return false;
  *out = HostBuffer{};
  out->data = data;
  out->bytes = bytes;
  NotePeak();
  return true;
}

// Large regions waste little between buffers. The demand of slabs is within the limit.
SlabRegions::Coming HostPool::TakeAhead() {
  constexpr size_t kRegionBytes = size_t{1} << 30;
  if (NeedsMapping() || IsOverLimit()) return {};
  return slabs_.TakeSlabsAhead(std::max(kRegionBytes, limits_.moving_bytes / 2));
}

void HostPool::AddAhead(const SlabRegions::Coming& coming) {
  slabs_.Add(coming);
  NotePeak();
}

bool HostPool::Pin(size_t bytes, HostBuffer* out) {
  if (pinned_bytes() + bytes > limit_bytes()) UnpinForRoom(bytes);
  if (pinned_bytes() + bytes > limit_bytes()) return false;
  if (!New(bytes, out)) return false;
  own_bytes_ += bytes;
  NotePeak();
  SetSlabGoal();
  return true;
}

bool HostPool::New(size_t bytes, HostBuffer* out) {
  std::optional<driver::HostMemory> memory;
  if (mappable_) memory = driver::NewMappableHostMemory(device_, bytes);
  const bool is_mappable = memory.has_value();
  if (!memory) memory = driver::NewPinnedHostMemory(bytes);
  if (!memory) return false;
  mappable_ = is_mappable;
  *out = HostBuffer{*memory, {}};
  return true;
}

void HostPool::Unpin(const HostBuffer& buffer) {
  if (slabs_.Owns(buffer.data)) return slabs_.Give(buffer.data, buffer.bytes);
  driver::DeleteHostMemory(buffer);
  (buffer.is_pinned ? own_bytes_ : ordinary_bytes_) -= buffer.bytes;
}

template <class Goes>
void HostPool::UnpinIdle(Goes goes) {
  const auto unpin = [&](HostBuffer& buffer) {
    if (!goes(buffer) || !timeline_->AllDone(&buffer.busy)) return false;
    Unpin(buffer);
    return true;
  };
  free_.erase(std::remove_if(free_.begin(), free_.end(), unpin), free_.end());
}

// Own memory goes first: the agent's slabs serve buffers of any size.
void HostPool::UnpinForRoom(size_t bytes) {
  const auto is_short = [&] { return pinned_bytes() + bytes > limit_bytes(); };
  UnpinIdle([&](const HostBuffer& buffer) { return is_short() && !slabs_.Owns(buffer.data); });
  if (!is_short() || slabs_.bytes() == 0) return;
  UnpinIdle([&](const HostBuffer& buffer) { return slabs_.Owns(buffer.data); });
  slabs_.ReleaseEmpty(pinned_bytes() + bytes - limit_bytes());
  SetSlabGoal();
}

// Own pinned memory is given up where a slab has room for such a buffer.
void HostPool::Give(HostBuffer* buffer) {
  HostBuffer given = std::move(*buffer);
  *buffer = HostBuffer{};
  if (!given.data) return;
  if (ordinary_bytes_ > 0) UnpinIdle([](const HostBuffer& buffer) { return !buffer.is_pinned; });
  const bool is_own = !slabs_.Owns(given.data);
  const bool goes = is_own && (!given.is_pinned || IsOverLimit() ||
                               (!must_map_ && !given.handle && slabs_.HasRoom(given.bytes)));
  if (goes && timeline_->AllDone(&given.busy)) {
    Unpin(given);
    return SetSlabGoal();
  }
  free_.push_back(std::move(given));
  if (IsOverLimit()) UnpinForRoom(0);
}

bool HostPool::TakeOrdinary(size_t bytes, HostBuffer* out) {
  const auto memory = driver::NewOrdinaryHostMemory(bytes);
  if (!memory) return false;
  *out = HostBuffer{*memory, {}};
  ordinary_bytes_ += bytes;
  ordinary_peak_bytes_ = std::max(ordinary_peak_bytes_, ordinary_bytes_);
  return true;
}

void HostPool::Release(HostBuffer* buffer) {
  if (!timeline_->AllDone(&buffer->busy)) return Give(buffer);
  const HostBuffer given = std::exchange(*buffer, {});
  Unpin(given);
  slabs_.ReleaseEmpty(given.bytes);
  SetSlabGoal();
}

void HostPool::ReleaseFree() {
  UnpinIdle([](const HostBuffer&) { return true; });
  slabs_.ReleaseEmpty(slabs_.bytes());
  SetSlabGoal();
}

Use HostPool::NextToAwait() {
  for (HostBuffer& buffer : free_) {
    const Use next = timeline_->OneToAwait(&buffer.busy);
    if (next.stream) return next;
  }
  return {};
}

void HostPool::ReleaseAll() {
  for (const HostBuffer& buffer : free_) Unpin(buffer);
  free_.clear();
  slabs_.ReleaseEmpty(slabs_.bytes());
  slabs_.SetGoal(slabs_.bytes());
}

void HostPool::SetLimits(const Limits& limits) {
  if (limits == limits_) return;
  limits_ = limits;
  if (IsOverLimit()) UnpinForRoom(0);
  SetSlabGoal();
}

size_t HostPool::limit_bytes() const {
  const size_t least_bytes =
      NeedsMapping() ? limits_.needed_bytes : std::min(limits_.needed_bytes, limits_.moving_bytes);
  return std::max(limits_.granted_bytes, least_bytes);
}

bool HostPool::MakeOrdinary(HostBuffer* buffer) {
  if (!buffer->data || !buffer->is_pinned || !timeline_->AllDone(&buffer->busy)) return false;
  HostBuffer ordinary;
  if (!TakeOrdinary(buffer->bytes, &ordinary)) return false;
  std::memcpy(ordinary.data, buffer->data, buffer->bytes);
  std::swap(*buffer, ordinary);
  Give(&ordinary);
  return true;
}

// A copy may begin in the new buffer at once.
bool HostPool::MakePinned(HostBuffer* buffer) {
  HostBuffer pinned;
  if (buffer->is_pinned || !timeline_->AllDone(&buffer->busy) || !TakeIdle(buffer->bytes, &pinned))
    return false;
  std::memcpy(pinned.data, buffer->data, buffer->bytes);
  std::swap(*buffer, pinned);
  Give(&pinned);
  return true;
}

void HostPool::MustMap(bool must_map) {
  must_map_ = must_map;
  SetSlabGoal();
}

// Asks for what is expected to be evicted, as far as own memory leaves room for it.
void HostPool::SetSlabGoal() {
  const size_t room_bytes = limit_bytes() - std::min(limit_bytes(), own_bytes_);
  const bool has_no_use = must_map_ && mappable_;
  const size_t expected_bytes =
      limits_.expected_bytes - std::min(limits_.expected_bytes, spilled_bytes_);
  slabs_.SetGoal(has_no_use ? slabs_.bytes() : std::min(room_bytes, expected_bytes));
}

void HostPool::NotePeak() {
  pinned_peak_bytes_ = std::max(pinned_peak_bytes_, pinned_bytes());
  slab_peak_bytes_ = std::max(slab_peak_bytes_, slabs_.bytes());
}

}  // namespace spillway::interposer
