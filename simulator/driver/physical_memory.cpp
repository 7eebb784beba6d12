#include "simulator/driver/physical_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "simulator/driver/books.h"
#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

// File offsets are never reused, so the files are given a size that no run exhausts; they are sparse.
constexpr off_t kFileBytes = off_t{1} << 60;

int CreateFile(const char* name) {
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kFileBytes) != 0) {
    std::perror("simulated GPU: cannot create its memory file");
    std::abort();
  }
  return file;
}

Level& LevelOf(Location location) {
  return location == Location::kDevice ? TheBooks().device_bytes : TheBooks().host_bytes;
}

}  // namespace

PhysicalBlock::~PhysicalBlock() { memory_.Release(*this); }

int PhysicalBlock::file() const { return memory_.files_[static_cast<int>(location_)]; }

PhysicalMemory::PhysicalMemory(std::uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes),
      files_{CreateFile("simulated-device-memory"), CreateFile("simulated-host-memory")} {}

std::uint64_t PhysicalMemory::free_bytes() const { return capacity_bytes_ - TheBooks().device_bytes.now(); }

PhysicalRef PhysicalMemory::Create(std::uint64_t size_bytes, Location location) {
  const std::uint64_t granules_bytes = (size_bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  Require(granules_bytes >= size_bytes, CUDA_ERROR_OUT_OF_MEMORY);
  if (location == Location::kDevice) Require(granules_bytes <= free_bytes(), CUDA_ERROR_OUT_OF_MEMORY);
  std::uint64_t& next = next_offset_[static_cast<int>(location)];
  auto block = std::make_shared<PhysicalBlock>(*this, next, granules_bytes, location);
  next += granules_bytes;
  LevelOf(location).Add(granules_bytes);
  return block;
}

void PhysicalMemory::Release(const PhysicalBlock& block) {
  fallocate(block.file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(block.offset()),
            static_cast<off_t>(block.size_bytes()));
  LevelOf(block.location()).Subtract(block.size_bytes());
}

}  // namespace spillway::simulator
