// Pinned host memory for data that is away from the device.
//
// Called by residency with the state lock held. Owns the pinned buffers that are not lent to a range.
//
// Invariants
//  1. Bytes pinned in all never exceed the limit.
//  2. A buffer given back may still be read or written by a copy under way: `busy` says which; whoever takes it
//     orders its own copy after that.
//  3. Buffers can be mapped at device addresses (host_memory.h) as long as the driver has such memory; from its first
//     refusal on they are only pinned.
// Errors: Take answers false when the limit is reached or the driver cannot pin more.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/driver/host_memory.h"
#include "interposer/execute/timeline.h"

namespace spillway::interposer {

struct HostBuffer : driver::HostMemory {
  UseList busy;
};

class HostPool {
 public:
  HostPool(int device, size_t limit_bytes, bool mappable, Timeline* timeline)
      : device_(device), limit_bytes_(limit_bytes), timeline_(timeline), mappable_(mappable) {}

  bool Take(size_t bytes, HostBuffer* out);
  // One that no copy keeps busy.
  bool TakeIdle(size_t bytes, HostBuffer* out);
  void Give(HostBuffer* buffer);
  // The first copy that keeps a free buffer busy; null stream when there is none.
  Use NextToAwait();
  void ReleaseAll();

  // Whether new buffers can be mapped at device addresses.
  bool mappable() const { return mappable_; }
  size_t limit_bytes() const { return limit_bytes_; }
  size_t pinned_bytes() const { return pinned_bytes_; }
  size_t pinned_peak_bytes() const { return pinned_peak_bytes_; }

 private:
  template <class Accepts>
  bool TakeFree(Accepts accepts, HostBuffer* out);
  bool Pin(size_t bytes, HostBuffer* out);
  bool New(size_t bytes, HostBuffer* out);
  void UnpinForRoom(size_t bytes);

  const int device_;
  const size_t limit_bytes_;
  Timeline* const timeline_;
  bool mappable_;
  std::vector<HostBuffer> free_;
  size_t pinned_bytes_ = 0;
  size_t pinned_peak_bytes_ = 0;
};

}  // namespace spillway::interposer
