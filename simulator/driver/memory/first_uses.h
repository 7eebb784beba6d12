// Tells which bytes of an allocation a program has written before a kernel first names it.
//
// A kernel whose effect is unknown counts as reading all that it names. What unwritten memory holds
// depends on how memory was reused, so those bytes are cleared when a launch first names the
// allocation.
//
// Under the engine's mutex, when operations take effect.
//
// Invariants
//  1. Writes are noted by address. The driver does not see whose memory it is: a library between
//     program and driver may make one allocation where the former one was.
//  2. A launch makes all bytes that it names bytes of that allocation. For another allocation they
//     count as unwritten.
//  3. Such a library may move an allocation to host memory and back. So a copy to the library's
//     host memory keeps whose bytes they are, and a copy back changes nothing: the program may
//     have written at the allocation's address meanwhile. Other copies and sets write for anybody.
//  4. So a copy into an allocation that no kernel ever named counts for the next one there too.
//  5. Memory that another process made counts as written from when it is opened here.
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
  enum class Copy { kWithinDevice, kToHost, kFromHost };

  void NoteWritten(std::uintptr_t base, std::size_t size_bytes);
  void NoteCopied(std::uintptr_t target, std::uintptr_t source, std::size_t size_bytes, Copy copy);

  // Empty if a launch has named the allocation before. `id` differs between allocations at one
  // address.
  std::vector<ByteRange> TakeUnwritten(std::uintptr_t base, std::size_t size_bytes,
                                       std::uint64_t id);

 private:
  static constexpr std::uint64_t kAnybodys = ~std::uint64_t{0};
  static constexpr std::uint64_t kNobodys = ~std::uint64_t{1};
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{2};  // in searches: nothing is noted
  struct Written {
    std::uintptr_t end;
    std::uint64_t owner;
  };

  void CutAt(std::uintptr_t address);
  void Assign(std::uintptr_t base, std::uintptr_t end, std::uint64_t owner);
  // `otherwise` owns what is not noted.
  template <class Action>
  void ForParts(std::uintptr_t base, std::uintptr_t end, std::uint64_t otherwise, Action action);

  std::map<std::uintptr_t, Written> written_;
  std::map<std::uintptr_t, std::uint64_t> named_;
};

}  // namespace spillway::simulator
