#include "simulator/driver/memory/physical_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "simulator/driver/failure.h"
#include "simulator/driver/machine/compute_mode.h"
#include "simulator/driver/machine/group_limits.h"
#include "simulator/driver/machine/node.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/shared_files.h"
#include "simulator/driver/memory/sparse_bytes.h"

namespace spillway::simulator {
namespace {

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* Pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// Not inherited by forked children: they own no device, and a copy would double the memory.
bool MapFresh(std::uintptr_t address, std::size_t size_bytes) {
  void* const placed =
      mmap(Pointer(address), size_bytes, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED, -1, 0);
  if (placed == MAP_FAILED) return false;
  const bool sparse = TheComputeMode() == ComputeMode::kTags;
  madvise(placed, size_bytes, sparse ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  madvise(placed, size_bytes, MADV_DONTFORK);
  return true;
}

bool Forbid(std::uintptr_t address, std::size_t size_bytes) {
  return mmap(Pointer(address), size_bytes, PROT_NONE, kPrivate | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool Move(std::uintptr_t from, std::uintptr_t to, std::size_t size_bytes, int flags = 0) {
  return mremap(Pointer(from), size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED | flags,
                Pointer(to)) != MAP_FAILED;
}

// `from` is never free meanwhile: it could become another thread's stack, which Forbid would take
// away. Linux before 5.7 cannot do that.
bool MoveOut(std::uintptr_t from, std::uintptr_t to, std::size_t size_bytes) {
  return Move(from, to, size_bytes, MREMAP_DONTUNMAP) || Move(from, to, size_bytes);
}

// Free addresses at a whole granule, so that whole page tables move. 0 when there are none.
std::uintptr_t FindFreeAddresses(std::size_t size_bytes) {
  void* const room = mmap(nullptr, size_bytes + kGranule, PROT_NONE, kPrivate, -1, 0);
  if (room == MAP_FAILED) return 0;
  const auto start = reinterpret_cast<std::uintptr_t>(room);
  const std::uintptr_t aligned = (start + kGranule - 1) / kGranule * kGranule;
  if (aligned != start) munmap(room, aligned - start);
  if (const std::size_t rest = start + kGranule - aligned; rest != 0)
    munmap(Pointer(aligned + size_bytes), rest);
  return aligned;
}

void CountAdded(const PhysicalBlock& block) {
  if (block.location() == Location::kHost)
    return TheStatistics().host_bytes.Add(block.size_bytes());
  TheStatistics().device_bytes.Add(block.size_bytes());
  TheStatistics().bytes_of_device[static_cast<std::size_t>(block.device())].Add(block.size_bytes());
}

void CountRemoved(const PhysicalBlock& block) {
  if (block.location() == Location::kHost)
    return TheStatistics().host_bytes.Subtract(block.size_bytes());
  TheStatistics().device_bytes.Subtract(block.size_bytes());
  TheStatistics().bytes_of_device[static_cast<std::size_t>(block.device())].Subtract(
      block.size_bytes());
}

}  // namespace

int PhysicalBlock::device() const { return memory_.device(); }

PhysicalBlock::~PhysicalBlock() {
  if (hidden_at_ != 0) munmap(Pointer(hidden_at_), size_bytes_);
  if (file_ >= 0) close(file_);
  memory_.Release(*this);
}

bool PhysicalBlock::Show(std::uintptr_t address, std::size_t size_bytes, bool writable) {
  const bool alone = shown_.empty() && size_bytes == size_bytes_;
  if (file_ < 0 && !alone && !BecomeShared()) return false;
  if (!(file_ < 0 ? ShowPrivate(address) : ShowShared(address, size_bytes))) return false;
  shown_.emplace(address, Place{size_bytes, writable});
  SetWritable(address, writable);
  return true;
}

void PhysicalBlock::SetWritable(std::uintptr_t address, bool writable) {
  Place& place = shown_.at(address);
  place.writable = writable;
  mprotect(Pointer(address), place.size_bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

bool PhysicalBlock::ShowPrivate(std::uintptr_t address) {
  const bool shown =
      hidden_at_ == 0 ? MapFresh(address, size_bytes_) : Move(hidden_at_, address, size_bytes_);
  if (!shown) return false;
  hidden_at_ = 0;
  NoteBlockMapping(address, size_bytes_, -1, location_ == Location::kHost);
  return true;
}

bool PhysicalBlock::ShowShared(std::uintptr_t address, std::size_t size_bytes) {
  if (mmap(Pointer(address), size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
           0) == MAP_FAILED)
    return false;
  NoteBlockMapping(address, size_bytes, file_, location_ == Location::kHost);
  return true;
}

// Moves the bytes into a file and maps it wherever the block is shown. See Note [Blocks move].
bool PhysicalBlock::BecomeShared() {
  const int file = memfd_create(BlockFileName(device(), location_).c_str(), MFD_CLOEXEC);
  if (file < 0) return false;
  const std::uintptr_t old_place = shown_.empty() ? hidden_at_ : shown_.begin()->first;
  void* const copy = ftruncate(file, static_cast<off_t>(size_bytes_)) != 0
                         ? MAP_FAILED
                         : mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (copy == MAP_FAILED) {
    close(file);
    return false;
  }
  if (old_place != 0) SparseCopy(copy, Pointer(old_place), size_bytes_);
  munmap(copy, size_bytes_);
  file_ = file;
  if (hidden_at_ != 0) munmap(Pointer(hidden_at_), size_bytes_);
  hidden_at_ = 0;
  for (const auto& [address, place] : shown_) {
    ShowShared(address, place.size_bytes);
    SetWritable(address, place.writable);
  }
  return true;
}

int PhysicalBlock::File() { return file_ >= 0 || BecomeShared() ? file_ : -1; }

void PhysicalBlock::Hide(std::uintptr_t address) {
  const auto place = shown_.find(address);
  if (file_ < 0) {
    hidden_at_ = FindFreeAddresses(size_bytes_);
    Require(hidden_at_ != 0 && MoveOut(address, hidden_at_, size_bytes_), CUDA_ERROR_OUT_OF_MEMORY);
  }
  Require(Forbid(address, place->second.size_bytes), CUDA_ERROR_OUT_OF_MEMORY);
  ForgetMapping(address);
  shown_.erase(place);
}

void PhysicalBlock::Drop(std::uintptr_t address) {
  const auto place = shown_.find(address);
  Require(Forbid(address, place->second.size_bytes), CUDA_ERROR_OUT_OF_MEMORY);
  ForgetMapping(address);
  shown_.erase(place);
}

PhysicalRef PhysicalMemory::Create(std::uint64_t size_bytes, Location location) {
  const std::uint64_t granules_bytes =
      (size_bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  Require(granules_bytes >= size_bytes, CUDA_ERROR_OUT_OF_MEMORY);
  Require(location != Location::kDevice || Take(granules_bytes), CUDA_ERROR_OUT_OF_MEMORY);
  auto block = std::make_shared<PhysicalBlock>(*this, granules_bytes, location);
  CountAdded(*block);
  return block;
}

std::uint64_t PhysicalMemory::free_bytes() const {
  return node_ != nullptr ? node_->FreeBytes(device_) : capacity_bytes_ - held_bytes_;
}

bool PhysicalMemory::Take(std::uint64_t size_bytes) {
  if (!GroupMayTake(device_, held_bytes_, size_bytes)) return false;
  const bool fits = node_ != nullptr ? node_->Take(device_, size_bytes)
                                     : size_bytes <= capacity_bytes_ - held_bytes_;
  if (fits) held_bytes_ += size_bytes;
  return fits;
}

PhysicalRef PhysicalMemory::Adopt(int file, std::uint64_t size_bytes, Location location) {
  return std::make_shared<PhysicalBlock>(*this, size_bytes, location, file);
}

void PhysicalMemory::Release(const PhysicalBlock& block) {
  if (block.foreign()) return;
  if (block.location() == Location::kDevice) {
    held_bytes_ -= block.size_bytes();
    if (node_ != nullptr) node_->GiveBack(device_, block.size_bytes());
  }
  CountRemoved(block);
}

}  // namespace spillway::simulator
