// Tells from an ELF file's headers whether the dynamic loader preloads into it.
//
// Invariants
//  1. Every read is checked against the file's length: a cut or hostile file gives kDamaged.
//  2. A foreign class or byte order gives kForeign without further reads.
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
  kStatic,   // no PT_INTERP: no dynamic loader, so no preloads
  kDynamic,
};

struct ElfFacts {
  ElfVerdict verdict;
  std::string detail;       // of kForeign: "32-bit", "machine 183"
  std::string interpreter;  // of kDynamic: the dynamic loader's path
};

ElfFacts InspectElf(std::string_view contents);

// Nullopt: it reaches beyond the file.
template <typename T>
std::optional<T> ReadAt(std::string_view contents, std::uint64_t offset) {
  if (offset > contents.size() || contents.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, contents.data() + offset, sizeof(T));
  return value;
}

}  // namespace spillway::cli
