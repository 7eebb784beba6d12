#include "cli/elf_file.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/elf_builder.h"

namespace spillway::cli {
namespace {

TEST(ElfFileTest, ProgramWithLoaderIsDynamic) {
  const ElfFacts facts = InspectElf(BuildElf({.interpreter = "/lib/some-loader.so"}));
  EXPECT_EQ(facts.verdict, ElfVerdict::kDynamic);
  EXPECT_EQ(facts.interpreter, "/lib/some-loader.so");
}

TEST(ElfFileTest, ProgramWithoutLoaderIsStaticWhateverItsType) {
  EXPECT_EQ(InspectElf(BuildElf({.type = ET_EXEC})).verdict, ElfVerdict::kStatic);
  EXPECT_EQ(InspectElf(BuildElf({.type = ET_DYN})).verdict, ElfVerdict::kStatic);
}

TEST(ElfFileTest, OtherWordSizeAndMachineAreForeignAndNamed) {
  const ElfFacts narrow = InspectElf(BuildElf({.word_size = ELFCLASS32}));
  EXPECT_EQ(narrow.verdict, ElfVerdict::kForeign);
  EXPECT_EQ(narrow.detail, "32-bit");
  EXPECT_EQ(InspectElf(BuildElf({.machine = kForeignMachine})).verdict, ElfVerdict::kForeign);
  EXPECT_EQ(InspectElf(BuildElf({.machine = EM_RISCV})).detail, "RISC-V");
}

TEST(ElfFileTest, ObjectFileIsNoProgram) {
  EXPECT_EQ(InspectElf(BuildElf({.type = ET_REL})).verdict, ElfVerdict::kDamaged);
}

TEST(ElfFileTest, OtherFilesAreNotElf) {
  EXPECT_EQ(InspectElf("").verdict, ElfVerdict::kNotElf);
  EXPECT_EQ(InspectElf("#!/bin/sh\n").verdict, ElfVerdict::kNotElf);
  EXPECT_EQ(InspectElf("\x7f"
                       "ELF")
                .verdict,
            ElfVerdict::kNotElf);
}

TEST(ElfFileTest, EveryTruncatedProgramIsRefusedWithoutACrash) {
  const std::string whole = BuildElf({.interpreter = "/lib/some-loader.so"});
  for (std::size_t length = EI_NIDENT; length < whole.size(); ++length) {
    EXPECT_EQ(InspectElf(std::string_view(whole).substr(0, length)).verdict, ElfVerdict::kDamaged)
        << length;
  }
}

TEST(ElfFileTest, SegmentsOutsideTheFileAreDamage) {
  std::string file = BuildElf({.interpreter = "/lib/some-loader.so"});
  auto* header = reinterpret_cast<Elf64_Ehdr*>(file.data());
  header->e_phoff = ~0ULL - 8;
  EXPECT_EQ(InspectElf(file).verdict, ElfVerdict::kDamaged);
}

}  // namespace
}  // namespace spillway::cli
