// Physical memory of a simulated device and of its host, in blocks that any address can show.
//
// A block lives as long as a handle or a mapping holds its pointer; then its bytes are free.
//
// Invariants
//  1. A device's live blocks never exceed its capacity; device_bytes.now sums over all devices.
//  2. A new block always reads as zero: the same program sees the same bytes in every run.
//  3. A block's bytes are the same wherever it is shown. Two places of one block are aliases.
//
// Note [Blocks move]
// A file mapping costs a page fault per 4 KiB after every map: 9 ms for 8 MiB where this was
// written, against 0.2 ms to fill them. So a block is private memory in huge pages, and mremap
// moves its page tables. Only a block that is shown twice, or in part, becomes a shared file.
// Untouched memory costs nothing; with huge pages a touch costs 2 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace spillway::simulator {

enum class Location { kDevice, kHost };

class Node;
class PhysicalMemory;

class PhysicalBlock {
 public:
  // `file`: of another process, which holds and counts the bytes.
  PhysicalBlock(PhysicalMemory& memory, std::uint64_t size_bytes, Location location, int file = -1)
      : memory_(memory),
        size_bytes_(size_bytes),
        location_(location),
        foreign_(file >= 0),
        file_(file) {}
  ~PhysicalBlock();
  PhysicalBlock(const PhysicalBlock&) = delete;
  PhysicalBlock& operator=(const PhysicalBlock&) = delete;

  std::uint64_t size_bytes() const { return size_bytes_; }
  Location location() const { return location_; }
  // A host block answers the device that created it.
  int device() const;

  bool foreign() const { return foreign_; }
  bool IsShownTwice() const { return shown_.size() > 1; }
  // Moves the bytes into a shared file. -1 when memory is short.
  int File();

  // Over any mapping at `address`. False when memory is short.
  bool Show(std::uintptr_t address, std::size_t size_bytes, bool writable);
  void SetWritable(std::uintptr_t address, bool writable);
  void Hide(std::uintptr_t address);
  void Drop(std::uintptr_t address);

 private:
  bool ShowPrivate(std::uintptr_t address);
  bool ShowShared(std::uintptr_t address, std::size_t size_bytes);
  struct Place {
    std::size_t size_bytes;
    bool writable;
  };

  bool BecomeShared();

  PhysicalMemory& memory_;
  const std::uint64_t size_bytes_;
  const Location location_;
  const bool foreign_;
  std::map<std::uintptr_t, Place> shown_;
  std::uintptr_t hidden_at_ =
      0;  // of private bytes that are shown nowhere; 0: never touched, or shown
  int file_ = -1;
};

using PhysicalRef = std::shared_ptr<PhysicalBlock>;

class PhysicalMemory {
 public:
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{2} << 20;

  explicit PhysicalMemory(std::uint64_t capacity_bytes, int device = 0, Node* node = nullptr)
      : device_(device), capacity_bytes_(capacity_bytes), node_(node) {}

  // Rounds up to granules. Throws CUDA_ERROR_OUT_OF_MEMORY when the device is full.
  PhysicalRef Create(std::uint64_t size_bytes, Location location);
  // The block takes over the descriptor.
  PhysicalRef Adopt(int file, std::uint64_t size_bytes, Location location);

  int device() const { return device_; }
  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::uint64_t free_bytes() const;

 private:
  friend class PhysicalBlock;
  bool Take(std::uint64_t size_bytes);
  void Release(const PhysicalBlock& block);

  const int device_;
  const std::uint64_t capacity_bytes_;
  Node* const node_;
  std::uint64_t held_bytes_ = 0;
};

inline constexpr std::size_t kGranule = PhysicalMemory::kGranuleBytes;

}  // namespace spillway::simulator
