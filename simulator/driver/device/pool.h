// A memory pool for stream-ordered allocation.
//
// Simulator owns pools; a pool owns the physical memory of its live and free blocks.
//
// Invariants
//  1. The stream that freed a block can reuse it at once, other streams after the free took place.
//  2. All of the pool's physical memory counts as device memory, also its free blocks.
//  3. Only TrimTo returns memory to the device: at a synchronisation, on demand, or in a shortage.
#pragma once

#include <cstdint>
#include <list>
#include <map>

#include "base/unique_fd.h"
#include "simulator/driver/device/context.h"
#include "simulator/driver/memory/device_heap.h"

namespace spillway::simulator {

struct Pool {
  Pool(PhysicalMemory& physical, AddressSpace& addresses, Location where)
      : heap(physical, addresses, where) {}

  struct FreeBlock {
    std::uintptr_t base;
    std::size_t size_bytes;
    std::uint64_t stream_id;
    OperationRef freed;  // null: free at once
  };

  std::uintptr_t Allocate(Engine& engine, Engine::Lock& lock, std::size_t size_bytes,
                          const Stream& stream);
  void Free(std::uintptr_t base, std::uint64_t stream_id, const OperationRef& freed);
  void TrimTo(std::uint64_t keep_bytes);
  void TrimAtSynchronisation() { TrimTo(release_threshold_bytes); }

  DeviceHeap heap;
  std::map<std::uintptr_t, std::size_t> live;
  std::list<FreeBlock> free;
  CUmemPoolProps properties = {};
  std::uint64_t release_threshold_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t used_high_bytes = 0;
  std::uint64_t reserved_high_bytes = 0;
  int reuse_follow_event_dependencies = 1;
  int reuse_allow_opportunistic = 1;
  int reuse_allow_internal_dependencies = 1;
  bool doomed = false;         // destroyed while memory of it is live
  bool imported = false;       // another process's
  base::UniqueFd shared_file;  // none before its export

 private:
  bool TakeFree(std::size_t rounded_bytes, const Stream& stream, std::uintptr_t& base);
  bool TryFresh(std::size_t size_bytes, std::uintptr_t& base);
};

}  // namespace spillway::simulator
