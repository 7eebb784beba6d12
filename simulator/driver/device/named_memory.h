// An allocation that a launch names by a word of its parameters, as the program itself would be
// told (calls/program_view.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::simulator {

struct NamedMemory {
  std::uint32_t offset_bytes = 0;  // of the word among the launch's parameters
  std::uintptr_t address = 0;
  std::uintptr_t base = 0;
  std::size_t size_bytes = 0;
  std::uint64_t id = 0;  // differs between allocations at one address

  bool Holds(std::uintptr_t other) const { return other - base < size_bytes; }
};

inline const NamedMemory* Holding(std::span<const NamedMemory> all, std::uintptr_t address) {
  for (const NamedMemory& named : all) {
    if (named.Holds(address)) return &named;
  }
  return nullptr;
}

}  // namespace spillway::simulator
