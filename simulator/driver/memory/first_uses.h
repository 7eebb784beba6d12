// Tells which bytes of an allocation a program has written before a kernel first names it.
//
// Serves the compute mode `tags`. A kernel whose effect is unknown counts as reading all that it
// names. Memory that nobody has written holds what its former owner left there, which depends on
// how memory was reused. So those bytes are cleared when a launch first names the allocation.
//
// Under the engine's mutex, when operations take effect.
//
// Invariants
//  1. Copies and sets are noted by address. The driver does not see whose memory it is: a library
//     between program and driver may make one allocation where the former one was.
//  2. So a copy into an allocation that no kernel ever named counts for the next one there too.
//  3. It holds at most one entry per written range and one per address of an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace spillway::simulator {

struct ByteRange {
  std::uintptr_t base;
  std::size_t size_bytes;

  bool operator==(const ByteRange&) const = default;
};

class FirstUses {
 public:
  void NoteWritten(std::uintptr_t base, std::size_t size_bytes);

  // What nothing has written of this allocation, if no launch has named it before; else nothing.
  // `id` differs between allocations at one address.
  std::vector<ByteRange> TakeUnwritten(std::uintptr_t base, std::size_t size_bytes,
                                       std::uint64_t id);

 private:
  void Forget(std::uintptr_t base, std::uintptr_t end);

  std::map<std::uintptr_t, std::uintptr_t> written_;  // beginnings to ends; apart from each other
  std::map<std::uintptr_t, std::uint64_t> named_;     // ids by address
};

}  // namespace spillway::simulator
