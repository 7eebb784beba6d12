#include "interposer/execute/host_pool.h"

#include <algorithm>

namespace spillway::interposer {

// Of exactly that size: a job has few sizes, and a larger buffer's rest would be lost under the limit.
bool HostPool::Take(size_t bytes, HostBuffer* out) {
  const auto fits = [bytes](const HostBuffer& buffer) { return buffer.bytes == bytes; };
  return TakeFree(fits, out) || Pin(bytes, out);
}

bool HostPool::TakeIdle(size_t bytes, HostBuffer* out) {
  const auto fits = [&](HostBuffer& buffer) {
    return buffer.bytes == bytes && timeline_->AllDone(&buffer.busy);
  };
  return TakeFree(fits, out) || Pin(bytes, out);
}

template <class Accepts>
bool HostPool::TakeFree(Accepts accepts, HostBuffer* out) {
  const auto at = std::find_if(free_.begin(), free_.end(), accepts);
  if (at == free_.end()) return false;
  *out = std::move(*at);
  free_.erase(at);
  return true;
}

bool HostPool::Pin(size_t bytes, HostBuffer* out) {
  if (pinned_bytes_ + bytes > limit_bytes_) UnpinForRoom(bytes);
  if (pinned_bytes_ + bytes > limit_bytes_) return false;
  if (!New(bytes, out)) return false;
  pinned_bytes_ += bytes;
  pinned_peak_bytes_ = std::max(pinned_peak_bytes_, pinned_bytes_);
  return true;
}

bool HostPool::New(size_t bytes, HostBuffer* out) {
  *out = HostBuffer{};
  if (mappable_ && driver::NewMappableHostMemory(device_, bytes, out)) return true;
  if (!driver::NewPinnedHostMemory(bytes, out)) return false;
  mappable_ = false;
  return true;
}

void HostPool::UnpinForRoom(size_t bytes) {
  const auto unpin = [&](HostBuffer& buffer) {
    if (pinned_bytes_ + bytes <= limit_bytes_ || !timeline_->AllDone(&buffer.busy)) return false;
    driver::DeleteHostMemory(buffer);
    pinned_bytes_ -= buffer.bytes;
    return true;
  };
  free_.erase(std::remove_if(free_.begin(), free_.end(), unpin), free_.end());
}

void HostPool::Give(HostBuffer* buffer) {
  if (buffer->data) free_.push_back(std::move(*buffer));
  *buffer = HostBuffer{};
}

Use HostPool::NextToAwait() {
  for (HostBuffer& buffer : free_) {
    const Use next = timeline_->OneToAwait(&buffer.busy);
    if (next.stream) return next;
  }
  return {};
}

void HostPool::ReleaseAll() {
  for (const HostBuffer& buffer : free_) {
    driver::DeleteHostMemory(buffer);
    pinned_bytes_ -= buffer.bytes;
  }
  free_.clear();
}

}  // namespace spillway::interposer
