// What an ELF file's headers say about whether the dynamic loader will preload into it.
//
// Pure reading of bytes, on one thread.
//
// Invariants
//  1. Everything read from the file is checked against its length: a cut or hostile file gives
//  kDamaged, no
//     crash.
//  2. Foreign class or byte order is reported as kForeign without reading further.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::cli {

enum class ElfVerdict {
  kNotElf,
  kDamaged,
  kForeign,  // another word size, byte order or machine
  kStatic,   // no PT_INTERP: no dynamic loader, nothing is preloaded
  kDynamic,
};

struct ElfFacts {
  ElfVerdict verdict;
  std::string detail;       // kForeign: what it is, "32-bit", "machine 183"
  std::string interpreter;  // kDynamic: the dynamic loader's path
};

// `contents` is the whole file.
ElfFacts InspectElf(std::string_view contents);

// What stands at `offset`; nothing where the file ends before its end.
template <typename T>
std::optional<T> ReadAt(std::string_view contents, std::uint64_t offset) {
  if (offset > contents.size() || contents.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, contents.data() + offset, sizeof(T));
  return value;
}

}  // namespace spillway::cli
