// Builds tiny ELF files for tests: a header and at most one PT_INTERP segment. They cannot run.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>

namespace spillway::cli {

#if defined(__x86_64__)
inline constexpr Elf64_Half kOwnMachine = EM_X86_64;
inline constexpr Elf64_Half kForeignMachine = EM_AARCH64;
inline constexpr char kOwnLoader[] = "/lib64/ld-linux-x86-64.so.2";
#else
inline constexpr Elf64_Half kOwnMachine = EM_AARCH64;
inline constexpr Elf64_Half kForeignMachine = EM_X86_64;
inline constexpr char kOwnLoader[] = "/lib/ld-linux-aarch64.so.1";
#endif

struct ElfContents {
  unsigned char word_size = ELFCLASS64;
  Elf64_Half machine = kOwnMachine;
  Elf64_Half type = ET_DYN;
  std::string interpreter = "";  // empty: a static program
};

inline std::string BuildElf(const ElfContents& contents) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = contents.word_size;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = contents.type;
  header.e_machine = contents.machine;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment = {};
  segment.p_type = contents.interpreter.empty() ? PT_LOAD : PT_INTERP;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = contents.interpreter.empty() ? 0 : contents.interpreter.size() + 1;
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  if (!contents.interpreter.empty())
    file.append(contents.interpreter.c_str(), contents.interpreter.size() + 1);
  return file;
}

}  // namespace spillway::cli
