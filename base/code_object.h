// A code object (cubin): the ELF file of one module for one architecture. Only sections and symbols
// are read.
//
// A value over bytes of the caller's, which may be unaligned, truncated or hostile.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/byte_view.h"

namespace spillway::base {

struct CodeSection {
  std::string_view name;
  Elf64_Word type = SHT_NULL;
  Elf64_Word link = 0;
  ByteView bytes;
};

struct CodeSymbol {
  std::string_view name;
  unsigned char type = STT_NOTYPE;
  unsigned char other = 0;
  std::uint64_t size_bytes = 0;
  std::size_t section = SHN_UNDEF;  // its number
};

class CodeObject {
 public:
  static constexpr Elf64_Half kMachine = 190;

  explicit CodeObject(ByteView file) : file_(file), header_(file.Read<Elf64_Ehdr>(0)) {
    if (!IsOne()) return;
    // Numbers beyond 16 bits are in the first section. (elf(5))
    const auto first = file_.Read<Elf64_Shdr>(header_.e_shoff);
    const std::size_t count = header_.e_shnum != 0 ? header_.e_shnum : first.sh_size;
    const std::size_t names = header_.e_shstrndx == SHN_XINDEX ? first.sh_link : header_.e_shstrndx;
    const bool fits = count <= SIZE_MAX / sizeof(Elf64_Shdr) &&
                      file_.Holds(header_.e_shoff, count * sizeof(Elf64_Shdr)) && names < count;
    if (!fits) return;
    count_ = count;
    names_ = BytesOf(Header(names));
  }

  // Its directory may still be unreadable.
  bool IsOne() const {
    return file_.BeginsWith({ELFMAG, SELFMAG}) && file_.Holds(0, sizeof header_) &&
           header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_machine == kMachine &&
           header_.e_shentsize == sizeof(Elf64_Shdr);
  }
  std::size_t section_count() const { return count_; }
  CodeSection Section(std::size_t number) const {
    const Elf64_Shdr header = Header(number);
    return {names_.TextAt(header.sh_name), header.sh_type, header.sh_link, BytesOf(header)};
  }
  // False if no symbol table is there, or if one is unreadable.
  template <class Action>
  bool ForSymbols(Action action) const {
    bool has_table = false;
    for (std::size_t i = 0; i < count_; ++i) {
      const CodeSection table = Section(i);
      if (table.type != SHT_SYMTAB) continue;
      if (table.link >= count_ || table.bytes.size() < Header(i).sh_size) return false;
      const ByteView strings = BytesOf(Header(table.link));
      for (std::size_t at = 0; at < table.bytes.size() / sizeof(Elf64_Sym); ++at)
        action(SymbolAt(table.bytes, at, strings));
      has_table = true;
    }
    return has_table;
  }
  std::size_t LengthByDirectory() const {
    std::size_t end = End(header_.e_shoff, count_ * sizeof(Elf64_Shdr));
    if (header_.e_phnum != 0)
      end = std::max(end, End(header_.e_phoff, header_.e_phnum * sizeof(Elf64_Phdr)));
    for (std::size_t i = 0; i < count_; ++i) {
      const Elf64_Shdr header = Header(i);
      if (header.sh_type != SHT_NOBITS) end = std::max(end, End(header.sh_offset, header.sh_size));
    }
    return end;
  }
  bool IsWhole() const { return count_ != 0 && file_.Holds(0, LengthByDirectory()); }

 private:
  static std::size_t End(std::size_t offset, std::size_t bytes) {
    return offset > SIZE_MAX - bytes ? SIZE_MAX : offset + bytes;
  }
  Elf64_Shdr Header(std::size_t number) const {
    if (number >= count_) return {};
    return file_.Read<Elf64_Shdr>(header_.e_shoff + number * sizeof(Elf64_Shdr));
  }
  ByteView BytesOf(const Elf64_Shdr& header) const {
    return header.sh_type == SHT_NOBITS ? ByteView() : file_.Part(header.sh_offset, header.sh_size);
  }
  CodeSymbol SymbolAt(ByteView table, std::size_t place, ByteView strings) const {
    const auto symbol = table.Read<Elf64_Sym>(place * sizeof(Elf64_Sym));
    return {strings.TextAt(symbol.st_name),
            static_cast<unsigned char>(ELF64_ST_TYPE(symbol.st_info)), symbol.st_other,
            symbol.st_size, SectionOf(symbol, place)};
  }
  // Section numbers beyond 16 bits are in a table beside the symbols.
  std::size_t SectionOf(const Elf64_Sym& symbol, std::size_t place) const {
    if (symbol.st_shndx != SHN_XINDEX) return symbol.st_shndx;
    for (std::size_t i = 0; i < count_; ++i) {
      const CodeSection table = Section(i);
      if (table.type == SHT_SYMTAB_SHNDX)
        return table.bytes.Read<Elf64_Word>(place * sizeof(Elf64_Word));
    }
    return SHN_UNDEF;
  }

  const ByteView file_;
  const Elf64_Ehdr header_;
  std::size_t count_ = 0;
  ByteView names_;
};

}  // namespace spillway::base
