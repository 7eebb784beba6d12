// Physical memory of the simulated device and of its host: sparse memory files, handed out in blocks.
//
// Used by: vmm (handles), allocator and pool (their mappings), host memory. All under the engine's mutex.
// Ownership: a block lives as long as anybody holds its pointer: a handle, a mapping. Its pages go back to the machine
// and its bytes are free again when the last holder lets go.
//
// Invariants
//  1. The sum of live device blocks is device_bytes.now and never exceeds the capacity.
//  2. A new block reads as zero, always: the same program sees the same bytes in every run.
//  3. Blocks never share or move file offsets, so two mappings of one block are aliases of the same bytes.
#pragma once

#include <cstdint>
#include <memory>

namespace spillway::simulator {

enum class Location { kDevice, kHost };

class PhysicalMemory;

class PhysicalBlock {
 public:
  PhysicalBlock(PhysicalMemory& memory, std::uint64_t offset, std::uint64_t size_bytes, Location location)
      : memory_(memory), offset_(offset), size_bytes_(size_bytes), location_(location) {}
  ~PhysicalBlock();
  PhysicalBlock(const PhysicalBlock&) = delete;
  PhysicalBlock& operator=(const PhysicalBlock&) = delete;

  std::uint64_t size_bytes() const { return size_bytes_; }
  Location location() const { return location_; }
  int file() const;
  std::uint64_t offset() const { return offset_; }

 private:
  PhysicalMemory& memory_;
  const std::uint64_t offset_;
  const std::uint64_t size_bytes_;
  const Location location_;
};

using PhysicalRef = std::shared_ptr<PhysicalBlock>;

class PhysicalMemory {
 public:
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{2} << 20;

  explicit PhysicalMemory(std::uint64_t capacity_bytes);

  // Throws CUDA_ERROR_OUT_OF_MEMORY when the device is full. `size_bytes` is rounded up to granules.
  PhysicalRef Create(std::uint64_t size_bytes, Location location);

  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::uint64_t free_bytes() const;

 private:
  friend class PhysicalBlock;
  void Release(const PhysicalBlock& block);

  const std::uint64_t capacity_bytes_;
  const int files_[2];  // by Location
  std::uint64_t next_offset_[2] = {0, 0};
};

}  // namespace spillway::simulator
