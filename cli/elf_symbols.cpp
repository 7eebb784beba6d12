#include "cli/elf_symbols.h"

#include <elf.h>

#include "cli/elf_file.h"

namespace spillway::cli {
namespace {

std::string_view Part(std::string_view contents, std::uint64_t offset, std::uint64_t size) {
  if (offset > contents.size() || size > contents.size() - offset) return {};
  return contents.substr(offset, size);
}

std::string_view StringAt(std::string_view strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  const std::string_view rest = strings.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

class Sections {
 public:
  explicit Sections(std::string_view contents)
      : contents_(contents), header_(ReadAt<Elf64_Ehdr>(contents, 0)) {
    if (!header_ || std::memcmp(header_->e_ident, ELFMAG, SELFMAG) != 0 ||
        header_->e_ident[EI_CLASS] != ELFCLASS64 || header_->e_shentsize != sizeof(Elf64_Shdr)) {
      header_.reset();
    }
  }

  std::optional<Elf64_Shdr> At(std::uint64_t index) const {
    if (!header_ || index >= header_->e_shnum) return std::nullopt;
    return ReadAt<Elf64_Shdr>(contents_, header_->e_shoff + index * sizeof(Elf64_Shdr));
  }

  std::optional<Elf64_Shdr> OfType(std::uint32_t type) const {
    for (std::uint64_t index = 0; const auto section = At(index); ++index) {
      if (section->sh_type == type) return section;
    }
    return std::nullopt;
  }

 private:
  std::string_view contents_;
  std::optional<Elf64_Ehdr> header_;
};

bool IsOffered(const Elf64_Sym& symbol) {
  const int binding = ELF64_ST_BIND(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK);
}

}  // namespace

std::set<std::string> ExportedSymbols(std::string_view contents) {
  const Sections sections(contents);
  const auto symbols = sections.OfType(SHT_DYNSYM);
  const auto strings = symbols ? sections.At(symbols->sh_link) : std::nullopt;
  if (!strings) return {};
  const std::string_view rows = Part(contents, symbols->sh_offset, symbols->sh_size);
  const std::string_view text = Part(contents, strings->sh_offset, strings->sh_size);
  std::set<std::string> names;
  for (std::uint64_t at = 0; const auto symbol = ReadAt<Elf64_Sym>(rows, at);
       at += sizeof(Elf64_Sym)) {
    const std::string_view name = StringAt(text, symbol->st_name);
    if (IsOffered(*symbol) && !name.empty()) names.emplace(name);
  }
  return names;
}

}  // namespace spillway::cli
