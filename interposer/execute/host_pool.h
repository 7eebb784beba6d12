// Pinned host memory for data that is away from the device.
//
// Called by residency with the state lock held. Owns the pinned buffers that are not lent to a range.
//
// Invariants
//  1. Bytes pinned in all never exceed the limit.
//  2. A buffer given back may still be read or written by a copy under way: `busy` says which; whoever takes it
//     orders its own copy after that.
// Errors: Take answers false when the limit is reached or the driver cannot pin more.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/execute/timeline.h"

namespace spillway::interposer {

struct HostBuffer {
  void* data = nullptr;
  size_t bytes = 0;
  UseList busy;
};

class HostPool {
 public:
  HostPool(size_t limit_bytes, Timeline* timeline) : limit_bytes_(limit_bytes), timeline_(timeline) {}

  bool Take(size_t bytes, HostBuffer* out);
  void Give(HostBuffer* buffer);
  // The first copy that keeps a free buffer busy; null stream when there is none.
  Use NextToAwait();
  void ReleaseAll();

  size_t limit_bytes() const { return limit_bytes_; }
  size_t pinned_bytes() const { return pinned_bytes_; }
  size_t pinned_peak_bytes() const { return pinned_peak_bytes_; }

 private:
  bool TakeFree(size_t bytes, HostBuffer* out);
  bool Pin(size_t bytes, HostBuffer* out);
  void UnpinForRoom(size_t bytes);

  const size_t limit_bytes_;
  Timeline* const timeline_;
  std::vector<HostBuffer> free_;
  size_t pinned_bytes_ = 0;
  size_t pinned_peak_bytes_ = 0;
};

}  // namespace spillway::interposer
