#include "cli/command_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/script_file.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/cli/elf_builder.h"

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

Identity Me() { return CurrentIdentity(); }
Identity SomebodyElse() { return {.user = Me().user + 1, .group = Me().group + 1}; }

std::string RefusalOf(const std::string& path, const Identity& identity) {
  try {
    CheckPreloadable(path, identity);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), 126);
    return failure.text();
  }
  return "accepted";
}

std::string DynamicProgram() { return BuildElf({.interpreter = kOwnLoader}); }

TEST(CommandTargetTest, DynamicProgramPasses) {
  test::ScratchFolder folder;
  EXPECT_EQ(RefusalOf(folder.Write("program", DynamicProgram(), 0755), Me()), "accepted");
}

TEST(CommandTargetTest, StaticProgramIsRefused) {
  test::ScratchFolder folder;
  EXPECT_THAT(RefusalOf(folder.Write("program", BuildElf({}), 0755), Me()),
              HasSubstr("statically linked"));
}

TEST(CommandTargetTest, ForeignProgramIsRefused) {
  test::ScratchFolder folder;
  const std::string path = folder.Write("program", BuildElf({.word_size = ELFCLASS32}), 0755);
  EXPECT_THAT(RefusalOf(path, Me()), HasSubstr("32-bit"));
}

TEST(CommandTargetTest, ProgramForMuslIsRefused) {
  test::ScratchFolder folder;
  const std::string path =
      folder.Write("program", BuildElf({.interpreter = "/lib/ld-musl-x86_64.so.1"}), 0755);
  EXPECT_THAT(RefusalOf(path, Me()), HasSubstr("musl"));
}

TEST(CommandTargetTest, ProgramWithoutItsLoaderIsRefused) {
  test::ScratchFolder folder;
  const std::string path =
      folder.Write("program", BuildElf({.interpreter = "/nowhere/ld.so"}), 0755);
  EXPECT_THAT(RefusalOf(path, Me()), HasSubstr("/nowhere/ld.so does not exist"));
}

TEST(CommandTargetTest, SetUserIdProgramIsRefusedUnlessItChangesNothing) {
  test::ScratchFolder folder;
  const std::string path = folder.Write("program", DynamicProgram(), 04755);
  EXPECT_THAT(RefusalOf(path, SomebodyElse()), HasSubstr("set-user-id"));
  EXPECT_EQ(RefusalOf(path, Me()), "accepted");
}

TEST(CommandTargetTest, SetGroupIdProgramIsRefused) {
  test::ScratchFolder folder;
  const std::string path = folder.Write("program", DynamicProgram(), 02755);
  EXPECT_THAT(RefusalOf(path, SomebodyElse()), HasSubstr("set-group-id"));
}

TEST(CommandTargetTest, ScriptIsJudgedByItsInterpreter) {
  test::ScratchFolder folder;
  const std::string interpreter = folder.Write("static-shell", BuildElf({}), 0755);
  EXPECT_EQ(RefusalOf(folder.Write("good", "#!/bin/sh\ntrue\n", 0755), Me()), "accepted");
  EXPECT_THAT(RefusalOf(folder.Write("bad", "#! " + interpreter + " -x\n", 0755), Me()),
              HasSubstr("statically linked"));
  EXPECT_THAT(RefusalOf(folder.Write("lost", "#!/nowhere/sh\n", 0755), Me()),
              HasSubstr("/nowhere/sh"));
}

TEST(CommandTargetTest, ScriptThatInterpretsItselfIsRefused) {
  test::ScratchFolder folder;
  const std::string path = folder.Write("snake", "#!" + folder.path() + "/snake\n", 0755);
  EXPECT_THAT(RefusalOf(path, Me()), HasSubstr("does not end"));
}

TEST(CommandTargetTest, TextWithoutInterpreterIsRefused) {
  test::ScratchFolder folder;
  EXPECT_THAT(RefusalOf(folder.Write("notes", "hello\n", 0755), Me()),
              HasSubstr("neither an ELF program nor a script"));
  EXPECT_THAT(RefusalOf(folder.Write("empty", "", 0755), Me()), HasSubstr("neither"));
}

int ExitCodeOfFinding(const std::string& name) {
  try {
    FindCommand(name);
  } catch (const Failure& failure) {
    return failure.exit_code();
  }
  return 0;
}

TEST(CommandTargetTest, FindsByPathAndByName) {
  test::ScratchFolder folder;
  const std::string path = folder.Write("program", DynamicProgram(), 0755);
  EXPECT_EQ(FindCommand(path), path);
  EXPECT_THAT(FindCommand("sh"), HasSubstr("/sh"));
}

TEST(CommandTargetTest, ExitCodesAreThoseOfAShell) {
  test::ScratchFolder folder;
  EXPECT_EQ(ExitCodeOfFinding(folder.path() + "/missing"), 127);
  EXPECT_EQ(ExitCodeOfFinding("no-such-command-anywhere"), 127);
  EXPECT_EQ(ExitCodeOfFinding(""), 127);
  EXPECT_EQ(ExitCodeOfFinding(folder.path()), 126);
  EXPECT_EQ(ExitCodeOfFinding(folder.Write("plain", DynamicProgram(), 0644)), 126);
}

TEST(ScriptFileTest, ReadsTheInterpreter) {
  EXPECT_EQ(ScriptInterpreter("#!/bin/sh\nrest"), "/bin/sh");
  EXPECT_EQ(ScriptInterpreter("#! \t/usr/bin/env python3\n"), "/usr/bin/env");
  EXPECT_EQ(ScriptInterpreter("#!/bin/sh"), "/bin/sh");
  EXPECT_EQ(ScriptInterpreter("#!/bin/sh\r\n"), "/bin/sh");
  EXPECT_EQ(ScriptInterpreter("#!\n"), std::nullopt);
  EXPECT_EQ(ScriptInterpreter("#"), std::nullopt);
}

}  // namespace
}  // namespace spillway::cli
