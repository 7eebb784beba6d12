// Physical memory of a simulated device and of its host, handed out in blocks that can be shown at
// any address.
//
// Used by: vmm (handles), allocator and pool (their mappings), through AddressSpace. All under the
// engine's mutex. Ownership: a block lives as long as anybody holds its pointer: a handle, a
// mapping. Its pages go back to the machine and its bytes are free again when the last holder lets
// go.
//
// Invariants
//  1. The sum of a device's live blocks never exceeds its capacity; all devices' together are
//  device_bytes.now.
//  2. A new block reads as zero, always: the same program sees the same bytes in every run.
//  3. A block's bytes are the same wherever it is shown; shown twice, the places are aliases.
//
// Note [Blocks move]
// Mapping a file afresh costs a page fault for every 4 KiB at every map (9 ms for 8 MiB on the
// machine where this was written, against 0.2 ms to fill them). So a block is ordinary private
// memory in huge pages, and showing it elsewhere moves its page tables (mremap). Only a block that
// is shown twice, or in part, becomes a shared file. Untouched memory costs nothing, but a touch
// takes 2 MiB at once where huge pages are on.
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
  // `file`: the bytes of another process's block; it holds and counts them.
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
  int device() const;  // whose memory it is; blocks on the host belong to none, and say the one
                       // that made them

  bool foreign() const { return foreign_; }
  // The file that holds the bytes, for others to map: from now on they live in one. -1: no memory.
  int File();

  // Makes the first `size_bytes` visible at `address`, over whatever is there. False: no memory.
  bool Show(std::uintptr_t address, std::size_t size_bytes, bool writable);
  void SetWritable(std::uintptr_t address, bool writable);
  // Makes that place inaccessible again; the bytes stay.
  void Hide(std::uintptr_t address);
  // The same when nobody will ask for the bytes again.
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
  std::map<std::uintptr_t, Place> shown_;  // by address
  std::uintptr_t hidden_at_ =
      0;           // private bytes that are shown nowhere; 0: never touched, or shown
  int file_ = -1;  // once shared
};

using PhysicalRef = std::shared_ptr<PhysicalBlock>;

class PhysicalMemory {
 public:
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{2} << 20;

  // `node`: the machine whose memory several processes share, or null.
  explicit PhysicalMemory(std::uint64_t capacity_bytes, int device = 0, Node* node = nullptr)
      : device_(device), capacity_bytes_(capacity_bytes), node_(node) {}

  // Throws CUDA_ERROR_OUT_OF_MEMORY when the device is full. `size_bytes` is rounded up to
  // granules.
  PhysicalRef Create(std::uint64_t size_bytes, Location location);
  // A block of another process, by its file, which the block takes over.
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
  std::uint64_t held_bytes_ = 0;  // of the device
};

inline constexpr std::size_t kGranule = PhysicalMemory::kGranuleBytes;

}  // namespace spillway::simulator
