// All memory that a program got from the driver, except its own VMM mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace spillway::simulator {

struct Pool;
struct Context;

enum class AllocationKind {
  kDevice,
  kPool,
  kManaged,
  kPinnedHost,
  kRegisteredHost,
  kGlobal,
  kOpened,
  kGraph
};

struct Allocation {
  std::uintptr_t base;
  std::size_t size_bytes;
  AllocationKind kind;
  unsigned flags = 0;
  Context* context = nullptr;
  int device = 0;
  Pool* pool = nullptr;
  std::uint64_t id = 0;
  bool synchronous_operations = false;
};

// Host memory is pinned and counted in whole pages.
inline std::size_t WholePages(std::size_t size_bytes) {
  constexpr std::size_t kPage = 4096;
  return (size_bytes + kPage - 1) / kPage * kPage;
}

class AllocationTable {
 public:
  Allocation& Add(Allocation allocation);
  void Remove(std::uintptr_t base) { by_base_.erase(base); }
  Allocation* FindBase(std::uintptr_t base);
  Allocation* Find(std::uintptr_t address);
  const Allocation* Find(std::uintptr_t address) const;
  const std::map<std::uintptr_t, Allocation>& all() const { return by_base_; }

 private:
  std::map<std::uintptr_t, Allocation> by_base_;
  std::uint64_t next_id_ = 1;
};

}  // namespace spillway::simulator
