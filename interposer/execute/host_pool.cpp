#include "interposer/execute/host_pool.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

bool HostPool::Take(size_t bytes, HostBuffer* out) { return TakeFree(bytes, out) || Pin(bytes, out); }

// Of exactly that size: a job has few sizes, and a larger buffer's rest would be lost under the limit.
bool HostPool::TakeFree(size_t bytes, HostBuffer* out) {
  const auto at =
      std::find_if(free_.begin(), free_.end(), [bytes](const HostBuffer& b) { return b.bytes == bytes; });
  if (at == free_.end()) return false;
  *out = std::move(*at);
  free_.erase(at);
  return true;
}

bool HostPool::Pin(size_t bytes, HostBuffer* out) {
  if (pinned_bytes_ + bytes > limit_bytes_) UnpinForRoom(bytes);
  if (pinned_bytes_ + bytes > limit_bytes_) return false;
  void* data = nullptr;
  if (Driver().cuMemHostAlloc(&data, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) return false;
  pinned_bytes_ += bytes;
  pinned_peak_bytes_ = std::max(pinned_peak_bytes_, pinned_bytes_);
  *out = HostBuffer{data, bytes, {}};
  return true;
}

void HostPool::UnpinForRoom(size_t bytes) {
  const auto unpin = [&](HostBuffer& buffer) {
    if (pinned_bytes_ + bytes <= limit_bytes_ || !timeline_->AllDone(&buffer.busy)) return false;
    Driver().cuMemFreeHost(buffer.data);
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
    if (!timeline_->AllDone(&buffer.busy)) return buffer.busy.items().front();
  }
  return {};
}

void HostPool::ReleaseAll() {
  for (const HostBuffer& buffer : free_) {
    Driver().cuMemFreeHost(buffer.data);
    pinned_bytes_ -= buffer.bytes;
  }
  free_.clear();
}

}  // namespace spillway::interposer
