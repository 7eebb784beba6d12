#include "agent/loop/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace spillway::agent {
namespace {

constexpr std::size_t kReserveBytes = std::size_t{32} << 20;

std::atomic<void*> reserve{nullptr};

// The new handler: operator new tries again after it.
void GiveReserve() {
  void* const given = reserve.exchange(nullptr);
  if (given == nullptr) throw std::bad_alloc();
  munmap(given, kReserveBytes);
}

}  // namespace

void MemoryReserve::Install() {
  Refill();
  std::set_new_handler(&GiveReserve);
}

bool MemoryReserve::IsShort() { return reserve.load() == nullptr; }

// Requires twice the size: otherwise the next request would use up the reserve again.
bool MemoryReserve::Refill() {
  void* const range = mmap(nullptr, 2 * kReserveBytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  munmap(static_cast<std::byte*>(range) + kReserveBytes, kReserveBytes);
  reserve.store(range);
  return true;
}

}  // namespace spillway::agent
