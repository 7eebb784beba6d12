#include "simulator/driver/memory/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "simulator/driver/failure.h"

// Defined under ThreadSanitizer, which ends a process that maps memory at unexpected places.
extern "C" __attribute__((weak)) void __tsan_init();

namespace spillway::simulator {
namespace {

// Far from where Linux puts programs, heaps, stacks and libraries.
constexpr std::uintptr_t kUsualArena = 0x200000000000;
constexpr std::size_t kArenaBytes = std::size_t{16} << 40;
constexpr std::size_t kArenaBytesUnderTsan = std::size_t{256} << 30;
constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

std::uintptr_t RoundUp(std::uintptr_t value, std::uintptr_t unit) {
  return (value + unit - 1) / unit * unit;
}

// With little address space (a ulimit, a sanitizer's layout) the arena is smaller and elsewhere.
std::uintptr_t ReserveArena(std::size_t& size_bytes) {
  void* const usual = reinterpret_cast<void*>(kUsualArena);
  const bool anywhere = __tsan_init != nullptr;
  for (size_bytes = anywhere ? kArenaBytesUnderTsan : kArenaBytes;
       size_bytes >= (std::size_t{1} << 32); size_bytes /= 4) {
    void* arena = anywhere
                      ? MAP_FAILED
                      : mmap(usual, size_bytes, PROT_NONE, kNothing | MAP_FIXED_NOREPLACE, -1, 0);
    if (arena != MAP_FAILED && arena != usual)
      munmap(arena, size_bytes);  // for kernels without NOREPLACE
    if (arena != usual) arena = mmap(nullptr, size_bytes, PROT_NONE, kNothing, -1, 0);
    if (arena != MAP_FAILED) return reinterpret_cast<std::uintptr_t>(arena);
  }
  std::perror("simulated GPU: cannot reserve device addresses");
  std::abort();
}

void Protect(std::uintptr_t base, std::size_t size_bytes, int protection) {
  if (mprotect(reinterpret_cast<void*>(base), size_bytes, protection) == 0) return;
  std::perror("simulated GPU: cannot protect device memory");
  std::abort();
}

}  // namespace

bool Mapping::IsReachableBy(const Viewer& viewer) const {
  if (by_device[static_cast<std::size_t>(viewer.device)] != Access::kNone) return true;
  return audience == Audience::kPeers && (viewer.peers >> block->device() & 1) != 0;
}

AddressSpace::AddressSpace(int device_count) : device_count_(device_count) {
  arena_ = ReserveArena(arena_bytes_);
  // An address just below a range is never valid.
  const std::uintptr_t first =
      RoundUp(arena_, PhysicalMemory::kGranuleBytes) + PhysicalMemory::kGranuleBytes;
  free_.emplace(first, arena_ + arena_bytes_ - first);
}

std::uintptr_t AddressSpace::Reserve(std::size_t size_bytes, std::size_t alignment_bytes,
                                     std::uintptr_t hint) {
  const auto take = [&](std::map<std::uintptr_t, std::size_t>::iterator range,
                        std::uintptr_t base) {
    const std::uintptr_t start = range->first;
    const std::uintptr_t end = start + range->second;
    free_.erase(range);
    if (base > start) free_.emplace(start, base - start);
    if (base + size_bytes < end) free_.emplace(base + size_bytes, end - base - size_bytes);
    return base;
  };
  const auto fits = [&](std::uintptr_t base, std::uintptr_t start, std::size_t room) {
    return base >= start && base - start <= room && room - (base - start) >= size_bytes;
  };
  if (hint != 0 && hint % alignment_bytes == 0) {
    auto range = free_.upper_bound(hint);
    if (range != free_.begin() && fits(hint, std::prev(range)->first, std::prev(range)->second)) {
      return take(std::prev(range), hint);
    }
  }
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const std::uintptr_t base = RoundUp(range->first, alignment_bytes);
    if (fits(base, range->first, range->second)) return take(range, base);
  }
  return 0;
}

void AddressSpace::Free(std::uintptr_t base, std::size_t size_bytes) {
  auto next = free_.lower_bound(base);
  if (next != free_.end() && next->first == base + size_bytes) {
    size_bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == base) {
    std::prev(next)->second += size_bytes;
  } else {
    free_.emplace(base, size_bytes);
  }
}

void AddressSpace::Map(std::uintptr_t base, std::size_t size_bytes, const PhysicalRef& block,
                       Access access, Audience audience) {
  Require(!mappings_.contains(base));
  Mapping mapping{base, size_bytes, block, audience};
  if (block->location() == Location::kHost)
    mapping.by_device.fill(access);
  else
    mapping.by_device[static_cast<std::size_t>(block->device())] = access;
  SetVisibility(mapping, access, Access::kNone);
  mappings_.emplace(base, std::move(mapping));
}

void AddressSpace::SetDeviceAccess(std::uintptr_t base, Access access, int device) {
  Mapping& mapping = mappings_.at(base);
  mapping.by_device[static_cast<std::size_t>(device)] = access;
  SetVisibility(mapping, *std::max_element(mapping.by_device.begin(), mapping.by_device.end()),
                mapping.host_access);
}

void AddressSpace::SetHostAccess(std::uintptr_t base, Access access) {
  Mapping& mapping = mappings_.at(base);
  SetVisibility(mapping, mapping.access, access);
}

void AddressSpace::Unmap(std::uintptr_t base) {
  const auto entry = mappings_.find(base);
  Mapping& mapping = entry->second;
  const bool last_holder = mapping.block.use_count() == 1;
  if (last_holder && Visible(mapping) != Access::kNone)
    mapping.block->Drop(base);
  else
    SetVisibility(mapping, Access::kNone, Access::kNone);
  mappings_.erase(entry);
}

template <class Action>
void AddressSpace::ForWithholdable(std::uintptr_t base, std::size_t size_bytes,
                                   Action action) const {
  const std::uintptr_t end = base + size_bytes;
  const Mapping* mapping = Find(base);
  if (mapping == nullptr) mapping = FindFrom(base);
  for (; mapping != nullptr && mapping->base < end; mapping = FindFrom(mapping->base + 1)) {
    if (!OnlyDevicesSee(*mapping)) continue;
    const std::uintptr_t first = std::max(base, mapping->base);
    action(first, std::min(end, mapping->base + mapping->size_bytes) - first, *mapping);
  }
}

void AddressSpace::Withhold(std::uintptr_t base, std::size_t size_bytes) {
  ForWithholdable(base, size_bytes, [](std::uintptr_t first, std::size_t bytes, const Mapping&) {
    Protect(first, bytes, PROT_NONE);
  });
}

void AddressSpace::GiveBack(std::uintptr_t base, std::size_t size_bytes) {
  ForWithholdable(base, size_bytes,
                  [](std::uintptr_t first, std::size_t bytes, const Mapping& mapping) {
                    GiveBackPart(mapping, first, bytes);
                  });
}

void AddressSpace::ShowOnlyTo(const Viewer& viewer) {
  for (const auto& [base, mapping] : mappings_) {
    if (!OnlyDevicesSee(mapping) || mapping.IsReachableBy(viewer)) continue;
    Protect(base, mapping.size_bytes, PROT_NONE);
    hidden_.push_back(base);
  }
}

void AddressSpace::ShowToAll() {
  for (const std::uintptr_t base : hidden_) {
    const Mapping& mapping = mappings_.at(base);
    GiveBackPart(mapping, base, mapping.size_bytes);
  }
  hidden_.clear();
}

bool AddressSpace::OnlyDevicesSee(const Mapping& mapping) {
  return mapping.access != Access::kNone && mapping.host_access == Access::kNone;
}

void AddressSpace::GiveBackPart(const Mapping& mapping, std::uintptr_t base,
                                std::size_t size_bytes) {
  Protect(base, size_bytes,
          mapping.access == Access::kReadWrite ? PROT_READ | PROT_WRITE : PROT_READ);
}

// One process is both device and host, so bytes are visible if either may see them.
Access AddressSpace::Visible(const Mapping& mapping) {
  return std::max(mapping.access, mapping.host_access);
}

void AddressSpace::SetVisibility(Mapping& mapping, Access device, Access host) {
  const Access before = Visible(mapping);
  const Access after = std::max(device, host);
  const bool writable = after == Access::kReadWrite;
  if (before == Access::kNone && after != Access::kNone) {
    // Linux allows 65,530 mappings in a process (vm.max_map_count), about as many blocks.
    Require(mapping.block->Show(mapping.base, mapping.size_bytes, writable),
            CUDA_ERROR_OUT_OF_MEMORY);
  } else if (before != Access::kNone && after == Access::kNone) {
    mapping.block->Hide(mapping.base);
  } else if (before != after) {
    mapping.block->SetWritable(mapping.base, writable);
  }
  mapping.access = device;
  mapping.host_access = host;
}

const Mapping* AddressSpace::Find(std::uintptr_t address) const {
  auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return nullptr;
  const Mapping& mapping = std::prev(next)->second;
  return address - mapping.base < mapping.size_bytes ? &mapping : nullptr;
}

const Mapping* AddressSpace::FindFrom(std::uintptr_t address) const {
  const auto next = mappings_.lower_bound(address);
  return next == mappings_.end() ? nullptr : &next->second;
}

bool AddressSpace::IsFreeOfMappings(std::uintptr_t base, std::size_t size_bytes) const {
  if (Find(base) != nullptr) return false;
  const Mapping* next = FindFrom(base);
  return next == nullptr || next->base >= base + size_bytes;
}

std::uintptr_t AddressSpace::FirstForbidden(std::uintptr_t base, std::size_t size_bytes,
                                            bool write) const {
  const Access needed = write ? Access::kReadWrite : Access::kRead;
  const std::uintptr_t end = base + size_bytes;
  if (end < base) return base;  // the range wraps around
  for (std::uintptr_t at = base; at < end;) {
    const Mapping* mapping = Find(at);
    if (mapping == nullptr || mapping->access < needed) return at;
    at = mapping->base + mapping->size_bytes;
  }
  return 0;
}

}  // namespace spillway::simulator
