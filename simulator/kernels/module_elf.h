// An image as compilers pass modules to the driver: in an ELF file for NVIDIA's machine.
//
// Other readers of the file's symbol table get names and sizes, as from a cubin. The file lives as
// long as the process, as the image must.
//
// Invariants
//  1. Symbols have the image's names: kernels STT_FUNC, variables STT_OBJECT in `.nv.global`, or in
//     `.nv.constant3` where they are constants.
//  2. The section `.spillway.image` holds the image's address.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

#include "simulator/kernels/image.h"

namespace spillway::simulator {

inline constexpr char kImageSection[] = ".spillway.image";
inline constexpr Elf64_Half kCudaMachine = 190;  // EM_CUDA

namespace internal {

class ElfWriter {
 public:
  Elf64_Off Append(const void* data, std::size_t bytes) {
    file_.resize((file_.size() + 7) / 8 * 8);
    const std::size_t at = file_.size();
    file_.insert(file_.end(), static_cast<const char*>(data),
                 static_cast<const char*>(data) + bytes);
    return at;
  }
  void AddSection(const char* name, Elf64_Word type, Elf64_Off at, std::size_t bytes,
                  Elf64_Word link = 0, std::size_t entry_bytes = 0) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<Elf64_Word>(names_.size());
    section.sh_type = type;
    section.sh_offset = at;
    section.sh_size = bytes;
    section.sh_link = link;
    section.sh_entsize = entry_bytes;
    sections_.push_back(section);
    names_.append(name, std::strlen(name) + 1);
  }
  // The last section holds the sections' names.
  std::vector<char> Finish() {
    AddSection(".shstrtab", SHT_STRTAB, 0, 0);
    sections_.back().sh_offset = Append(names_.data(), names_.size());
    sections_.back().sh_size = names_.size();
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = kCudaMachine;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections_.size());
    header.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
    header.e_shoff = Append(sections_.data(), sections_.size() * sizeof(Elf64_Shdr));
    std::memcpy(file_.data(), &header, sizeof header);
    return file_;
  }

 private:
  std::vector<char> file_ = std::vector<char>(sizeof(Elf64_Ehdr));
  std::vector<Elf64_Shdr> sections_ = std::vector<Elf64_Shdr>(1);
  std::string names_ = std::string(1, '\0');
};

inline void AddSymbol(const char* name, unsigned char type, Elf64_Half section, std::size_t bytes,
                      std::vector<Elf64_Sym>* symbols, std::string* names) {
  Elf64_Sym symbol{};
  symbol.st_name = static_cast<Elf64_Word>(names->size());
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
  symbol.st_shndx = section;
  symbol.st_size = bytes;
  symbols->push_back(symbol);
  names->append(name, std::strlen(name) + 1);
}

}  // namespace internal

enum class GlobalsAre : bool { kVariables, kConstants };

inline const void* ModuleElfOf(const Image& image, GlobalsAre globals = GlobalsAre::kVariables) {
  constexpr Elf64_Half kCode = 1, kVariables = 2, kStrings = 3;
  std::vector<Elf64_Sym> symbols(1);
  std::string strings(1, '\0');
  for (std::uint32_t i = 0; i < image.kernel_count; ++i)
    internal::AddSymbol(image.kernels[i].name, STT_FUNC, kCode, 0, &symbols, &strings);
  for (std::uint32_t i = 0; i < image.global_count; ++i)
    internal::AddSymbol(image.globals[i].name, STT_OBJECT, kVariables, image.globals[i].size_bytes,
                        &symbols, &strings);
  const Image* const address = &image;
  internal::ElfWriter writer;
  writer.AddSection(".text", SHT_NOBITS, 0, 0);
  writer.AddSection(globals == GlobalsAre::kConstants ? ".nv.constant3" : ".nv.global", SHT_NOBITS,
                    0, 0);
  writer.AddSection(".strtab", SHT_STRTAB, writer.Append(strings.data(), strings.size()),
                    strings.size());
  const std::size_t symbol_bytes = symbols.size() * sizeof(Elf64_Sym);
  writer.AddSection(".symtab", SHT_SYMTAB, writer.Append(symbols.data(), symbol_bytes),
                    symbol_bytes, kStrings, sizeof(Elf64_Sym));
  writer.AddSection(kImageSection, SHT_PROGBITS, writer.Append(&address, sizeof address),
                    sizeof address);
  return (new std::vector<char>(writer.Finish()))->data();
}

}  // namespace spillway::simulator
