#include "interposer/execute/state/slab_regions.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/host_memory.h"

namespace spillway::interposer {

using driver::Driver;

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t SizeOf(const std::vector<HostSlab>& slabs) {
  std::size_t bytes = 0;
  for (const HostSlab& slab : slabs) bytes += slab.bytes;
  return bytes;
}

// Addresses for that many bytes, aligned for huge pages; null when there are none.
std::byte* Reserve(std::size_t bytes) {
  void* const all = mmap(nullptr, bytes + kHugePage, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(all);
  const std::size_t skipped =
      (kHugePage - reinterpret_cast<std::size_t>(begin) % kHugePage) % kHugePage;
  if (skipped > 0) munmap(begin, skipped);
  munmap(begin + skipped + bytes, kHugePage - skipped);
  return begin + skipped;
}

bool MapAt(std::byte* at, const HostSlab& slab) {
  return mmap(at, slab.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, slab.file.get(), 0) !=
         MAP_FAILED;
}

// Null when the driver refuses them.
std::byte* MapFiles(const std::vector<HostSlab>& slabs, std::size_t bytes) {
  std::byte* const begin = Reserve(bytes);
  if (!begin) return nullptr;
  std::size_t done_bytes = 0;
  for (const HostSlab& slab : slabs) {
    if (!MapAt(begin + done_bytes, slab)) break;
    done_bytes += slab.bytes;
  }
  madvise(begin, done_bytes, MADV_DONTFORK);
  if (done_bytes == bytes &&
      Driver().cuMemHostRegister_v2(begin, bytes, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS)
    return begin;
  munmap(begin, bytes);
  return nullptr;
}

}  // namespace

SlabRegions::Regions::const_iterator SlabRegions::Find(const void* buffer) const {
  auto* const at = const_cast<std::byte*>(static_cast<const std::byte*>(buffer));
  auto region = regions_.upper_bound(at);
  if (region == regions_.begin()) return regions_.end();
  --region;
  return at < region->first + region->second.bytes ? region : regions_.end();
}

std::byte* SlabRegions::Take(std::size_t bytes) {
  for (auto& [begin, region] : regions_) {
    const auto fits = [bytes](const auto& piece) { return piece.second >= bytes; };
    const auto piece = std::find_if(region.free.begin(), region.free.end(), fits);
    if (piece == region.free.end()) continue;
    const auto [offset, size] = *piece;
    region.free.erase(piece);
    if (size > bytes) region.free.emplace(offset + bytes, size - bytes);
    return begin + offset;
  }
  return nullptr;
}

void SlabRegions::Give(void* buffer, std::size_t bytes) {
  const auto found = regions_.find(Find(buffer)->first);
  auto& free = found->second.free;
  auto piece =
      free.emplace(static_cast<std::size_t>(static_cast<std::byte*>(buffer) - found->first), bytes)
          .first;
  if (const auto after = std::next(piece);
      after != free.end() && piece->first + piece->second == after->first) {
    piece->second += after->second;
    free.erase(after);
  }
  if (piece == free.begin()) return;
  const auto before = std::prev(piece);
  if (before->first + before->second != piece->first) return;
  before->second += piece->second;
  free.erase(piece);
}

bool SlabRegions::HasRoom(std::size_t bytes) const {
  const auto has_room = [bytes](const auto& region) {
    return std::any_of(region.second.free.begin(), region.second.free.end(),
                       [bytes](const auto& piece) { return piece.second >= bytes; });
  };
  return std::any_of(regions_.begin(), regions_.end(), has_room) ||
         HostSlabs::Instance().Have(device_, bytes);
}

bool SlabRegions::MapFor(std::size_t bytes, std::size_t most_bytes) {
  Coming coming = Come(HostSlabs::Instance().Take(device_, bytes, most_bytes));
  Map(&coming);
  return Add(coming);
}

SlabRegions::Coming SlabRegions::TakeSlabsAhead(std::size_t region_bytes) {
  return Come(HostSlabs::Instance().TakeAhead(device_, region_bytes));
}

SlabRegions::Coming SlabRegions::Come(std::vector<HostSlab> slabs) {
  bytes_ += SizeOf(slabs);
  return {.device = device_, .slabs = std::move(slabs)};
}

void SlabRegions::Map(Coming* coming) {
  if (coming->slabs.empty()) return;
  const std::size_t bytes = SizeOf(coming->slabs);
  if (!coming->slabs.front().is_drivers) {
    coming->begin = MapFiles(coming->slabs, bytes);
    return;
  }
  std::vector<int> files;
  files.reserve(coming->slabs.size());
  for (const HostSlab& slab : coming->slabs) files.push_back(slab.file.get());
  void* const begin =
      driver::MapImportedHostMemory(coming->device, files, coming->slabs.front().bytes);
  if (begin) madvise(begin, bytes, MADV_DONTFORK);
  coming->begin = static_cast<std::byte*>(begin);
}

// The files are closed afterwards; mappings need none.
bool SlabRegions::Add(const Coming& coming) {
  if (coming.slabs.empty()) return false;
  Region region;
  region.bytes = SizeOf(coming.slabs);
  region.is_drivers = coming.slabs.front().is_drivers;
  for (const HostSlab& slab : coming.slabs) region.names.push_back(slab.name);
  if (!coming.begin) {
    refused_ = true;
    bytes_ -= region.bytes;
    HostSlabs::Instance().Return(device_, region.names);
    HostSlabs::Instance().SetGoal(device_, bytes_);
    return false;
  }
  region.free.emplace(0, region.bytes);
  regions_.emplace(coming.begin, std::move(region));
  return true;
}

void SlabRegions::SetGoal(std::size_t bytes) {
  HostSlabs::Instance().SetGoal(device_, refused_ ? bytes_ : bytes);
}

void SlabRegions::ReleaseEmpty(std::size_t bytes) {
  const std::size_t until_bytes = bytes_ - std::min(bytes, bytes_);
  for (auto region = regions_.begin(); region != regions_.end() && bytes_ > until_bytes;) {
    const auto& free = region->second.free;
    const bool is_empty = free.size() == 1 && free.begin()->second == region->second.bytes;
    region = is_empty ? Release(region) : std::next(region);
  }
}

SlabRegions::Regions::iterator SlabRegions::Release(Regions::iterator region) {
  if (region->second.is_drivers) {
    driver::UnmapImportedHostMemory(region->first, region->second.bytes);
  } else {
    Driver().cuMemHostUnregister(region->first);
    munmap(region->first, region->second.bytes);
  }
  bytes_ -= region->second.bytes;
  HostSlabs::Instance().Return(device_, region->second.names);
  return regions_.erase(region);
}

}  // namespace spillway::interposer
