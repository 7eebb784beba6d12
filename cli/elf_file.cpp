#include "cli/elf_file.h"

#include <elf.h>

#include <cstring>

namespace spillway::cli {
namespace {

#if defined(__x86_64__)
constexpr int kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kOwnMachine = EM_AARCH64;
#else
#error "Spillway knows x86-64 and aarch64"
#endif

bool HasElfMagic(std::string_view contents) {
  return contents.size() >= EI_NIDENT && std::memcmp(contents.data(), ELFMAG, SELFMAG) == 0;
}

ElfFacts Only(ElfVerdict verdict, std::string detail = "") {
  return {.verdict = verdict, .detail = std::move(detail), .interpreter = ""};
}

std::string MachineName(int machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "32-bit x86";
    case EM_PPC64:
      return "ppc64";
    case EM_RISCV:
      return "RISC-V";
    default:
      return "ELF machine " + std::to_string(machine);
  }
}

std::optional<std::string> ReadInterpreter(std::string_view contents, const Elf64_Phdr& segment) {
  if (segment.p_offset > contents.size() || segment.p_filesz > contents.size() - segment.p_offset) {
    return std::nullopt;
  }
  const std::string_view bytes = contents.substr(segment.p_offset, segment.p_filesz);
  return std::string(bytes.substr(0, bytes.find('\0')));
}

ElfFacts InspectSegments(std::string_view contents, const Elf64_Ehdr& header) {
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return Only(ElfVerdict::kDamaged);
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = ReadAt<Elf64_Phdr>(contents, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return Only(ElfVerdict::kDamaged);
    if (segment->p_type != PT_INTERP) continue;
    const std::optional<std::string> interpreter = ReadInterpreter(contents, *segment);
    if (!interpreter) return Only(ElfVerdict::kDamaged);
    return {.verdict = ElfVerdict::kDynamic, .detail = "", .interpreter = *interpreter};
  }
  return Only(ElfVerdict::kStatic);
}

}  // namespace

ElfFacts InspectElf(std::string_view contents) {
  if (!HasElfMagic(contents)) return Only(ElfVerdict::kNotElf);
  if (contents[EI_CLASS] != ELFCLASS64) return Only(ElfVerdict::kForeign, "32-bit");
  if (contents[EI_DATA] != ELFDATA2LSB) return Only(ElfVerdict::kForeign, "big-endian");
  const auto header = ReadAt<Elf64_Ehdr>(contents, 0);
  if (!header) return Only(ElfVerdict::kDamaged);
  if (header->e_machine != kOwnMachine)
    return Only(ElfVerdict::kForeign, MachineName(header->e_machine));
  if (header->e_type != ET_EXEC && header->e_type != ET_DYN) return Only(ElfVerdict::kDamaged);
  return InspectSegments(contents, *header);
}

}  // namespace spillway::cli
