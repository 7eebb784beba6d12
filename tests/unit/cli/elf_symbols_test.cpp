#include "cli/elf_symbols.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Symbol {
  std::uint32_t name_offset;
  unsigned char binding;
  std::uint16_t section;
};

template <typename T>
void Append(std::string* file, const T& value) {
  file->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Header, two section headers (symbols, strings), the symbols, the strings.
std::string LibraryWith(const std::vector<Symbol>& symbols, const std::string& strings) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  Elf64_Shdr table = {};
  table.sh_type = SHT_DYNSYM;
  table.sh_link = 1;
  table.sh_offset = sizeof header + 2 * sizeof(Elf64_Shdr);
  table.sh_size = symbols.size() * sizeof(Elf64_Sym);
  Elf64_Shdr text = {};
  text.sh_type = SHT_STRTAB;
  text.sh_offset = table.sh_offset + table.sh_size;
  text.sh_size = strings.size();
  std::string file;
  Append(&file, header);
  Append(&file, table);
  Append(&file, text);
  for (const Symbol& symbol : symbols) {
    Elf64_Sym row = {};
    row.st_name = symbol.name_offset;
    row.st_info = static_cast<unsigned char>(ELF64_ST_INFO(symbol.binding, STT_FUNC));
    row.st_shndx = symbol.section;
    Append(&file, row);
  }
  return file + strings;
}

const std::string kStrings("\0cuA\0cuB\0cuC\0", 13);

TEST(ElfSymbolsTest, ListsExportedSymbols) {
  EXPECT_THAT(ExportedSymbols(LibraryWith({{1, STB_GLOBAL, 7}, {5, STB_WEAK, 7}}, kStrings)),
              ElementsAre("cuA", "cuB"));
}

TEST(ElfSymbolsTest, LeavesOutUndefinedLocalAndNamelessSymbols) {
  EXPECT_THAT(
      ExportedSymbols(LibraryWith(
          {{1, STB_GLOBAL, SHN_UNDEF}, {5, STB_LOCAL, 7}, {0, STB_GLOBAL, 7}, {9, STB_GLOBAL, 7}},
          kStrings)),
      ElementsAre("cuC"));
}

TEST(ElfSymbolsTest, NamesOutsideTheFileAreLeftOut) {
  EXPECT_THAT(ExportedSymbols(LibraryWith({{5000, STB_GLOBAL, 7}, {1, STB_GLOBAL, 7}}, kStrings)),
              ElementsAre("cuA"));
}

TEST(ElfSymbolsTest, TruncatedFilesDoNotCrash) {
  const std::string whole = LibraryWith({{1, STB_GLOBAL, 7}, {5, STB_GLOBAL, 7}}, kStrings);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_LE(ExportedSymbols(std::string_view(whole).substr(0, length)).size(), 2u);
  }
}

TEST(ElfSymbolsTest, OtherFilesHaveNoSymbols) {
  EXPECT_THAT(ExportedSymbols(""), IsEmpty());
  EXPECT_THAT(ExportedSymbols("#!/bin/sh\n"), IsEmpty());
}

}  // namespace
}  // namespace spillway::cli
