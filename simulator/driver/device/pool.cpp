#include "simulator/driver/device/pool.h"

#include <algorithm>

#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

std::size_t Rounded(std::size_t size_bytes) {
  const std::size_t unit = size_bytes >= DeviceHeap::kLargeBytes ? PhysicalMemory::kGranuleBytes
                                                                 : DeviceHeap::kSmallAlignment;
  return (size_bytes + unit - 1) / unit * unit;
}

}  // namespace

std::uintptr_t Pool::Allocate(Engine& engine, Engine::Lock& lock, std::size_t size_bytes,
                              const Stream& stream) {
  const std::size_t rounded = Rounded(size_bytes);
  Require(rounded >= size_bytes, CUDA_ERROR_OUT_OF_MEMORY);
  std::uintptr_t base = 0;
  if (!TakeFree(rounded, stream, base) && !TryFresh(rounded, base)) {
    TrimTo(0);
    while (!TryFresh(rounded, base)) {
      const auto pending =
          std::find_if(free.begin(), free.end(), [](auto& block) { return !IsDone(block.freed); });
      Require(pending != free.end(), CUDA_ERROR_OUT_OF_MEMORY);
      const OperationRef freed =
          pending->freed;  // a copy: other threads may change the list during the wait
      engine.Wait(lock, freed);
      TrimTo(0);
    }
  }
  live.emplace(base, rounded);
  used_bytes += rounded;
  used_high_bytes = std::max(used_high_bytes, used_bytes);
  reserved_high_bytes = std::max(reserved_high_bytes, heap.physical_bytes());
  return base;
}

bool Pool::TakeFree(std::size_t rounded_bytes, const Stream& stream, std::uintptr_t& base) {
  const auto reusable = std::find_if(free.begin(), free.end(), [&](const FreeBlock& block) {
    return block.size_bytes == rounded_bytes &&
           (block.stream_id == stream.id || IsDone(block.freed));
  });
  if (reusable == free.end()) return false;
  base = reusable->base;
  free.erase(reusable);
  return true;
}

bool Pool::TryFresh(std::size_t size_bytes, std::uintptr_t& base) {
  try {
    base = heap.Allocate(size_bytes);
    return true;
  } catch (const Failure&) {
    return false;
  }
}

void Pool::Free(std::uintptr_t base, std::uint64_t stream_id, const OperationRef& freed) {
  const auto block = live.find(base);
  free.push_back(FreeBlock{base, block->second, stream_id, freed});
  used_bytes -= block->second;
  live.erase(block);
}

void Pool::TrimTo(std::uint64_t keep_bytes) {
  for (auto block = free.begin(); block != free.end() && heap.physical_bytes() > keep_bytes;) {
    if (!IsDone(block->freed)) {
      ++block;
      continue;
    }
    heap.Free(block->base);
    block = free.erase(block);
  }
}

}  // namespace spillway::simulator
