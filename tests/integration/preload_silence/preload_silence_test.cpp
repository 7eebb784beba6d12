#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/integration/entry_points/entry_paths.h"
#include "tests/integration/process.h"

namespace spillway::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Command = std::vector<std::string>;

Environment Bare() { return {{"LD_LIBRARY_PATH", EntryDriverFolder()}}; }

Environment Preloaded() {
  Environment environment = Bare();
  environment["LD_PRELOAD"] = PreloadLibrary();
  environment["SPILLWAY_DRIVER"] = EntryDriver();
  environment["SPILLWAY_BUDGET"] = "1073741824";
  environment["SPILLWAY_SUMMARY"] = "1";
  environment["SPILLWAY_REPORT"] =
      ::testing::TempDir() + "preload_silence_" + std::to_string(getpid()) + ".json";
  return environment;
}

class ProgramWithoutCuda : public ::testing::TestWithParam<Command> {};

TEST_P(ProgramWithoutCuda, IsUnaffectedByThePreload) {
  const Environment preloaded = Preloaded();
  std::filesystem::remove(preloaded.at("SPILLWAY_REPORT"));
  EXPECT_EQ(RunProgram(GetParam(), preloaded), RunProgram(GetParam(), Bare()));
  EXPECT_FALSE(std::filesystem::exists(preloaded.at("SPILLWAY_REPORT")));
}

INSTANTIATE_TEST_SUITE_P(
    Silence, ProgramWithoutCuda,
    ::testing::Values(Command{"/bin/true"}, Command{"/bin/false"},
                      Command{"bash", "-c", "echo one; echo two >&2; exit 7"},
                      Command{"bash", "-c", "kill -TERM $$"},
                      Command{"python3", "-c",
                              "import threading, subprocess; subprocess.run(['/bin/echo', 'x'])"},
                      Command{"python3", "-c",
                              "import ctypes; print(ctypes.CDLL(None).getpid() > 0)"},
                      Command{"python3", "-c", "raise SystemExit(3)"}));

TEST(PreloadSilenceTest, NothingIsOpenedStartedOrCaughtWithoutCuda) {
  const std::string script =
      "import os\n"
      "print([line for line in open('/proc/self/status') if line.startswith(('Threads', 'SigCgt', "
      "'SigIgn'))])\n"
      "print(any('libcuda' in line for line in open('/proc/self/maps')))\n"
      "print(sorted(os.listdir('/proc/self/fd')))\n";
  const Ended preloaded = RunProgram({"python3", "-c", script}, Preloaded());
  EXPECT_EQ(preloaded, RunProgram({"python3", "-c", script}, Bare()));
  EXPECT_THAT(preloaded.standard_output, HasSubstr("False\n"));
}

TEST(PreloadSilenceTest, ForkedChildGetsTheDriversOwnAnswersAndWritesNothing) {
  const Ended bare = RunProgram({EntryPath("forking_program"), "after"}, Bare());
  const Ended preloaded = RunProgram({EntryPath("forking_program"), "after"}, Preloaded());

  const auto child_line = [](const Ended& ended) {
    return ended.standard_output.substr(ended.standard_output.find("child "));
  };
  ASSERT_THAT(bare.standard_output, HasSubstr("child cuInit="));
  ASSERT_THAT(preloaded.standard_output, HasSubstr("child cuInit="));
  EXPECT_EQ(child_line(preloaded), child_line(bare));
}

TEST(PreloadSilenceTest, ChildForkedBeforeCudaIsInitialisedIsServedNormally) {
  const Ended preloaded = RunProgram({EntryPath("forking_program"), "before"}, Preloaded());
  EXPECT_THAT(preloaded.standard_output,
              HasSubstr("child cuInit=0 cuDeviceGetCount=0 devices=1 cuDeviceTotalMem=0"));
}

}  // namespace
}  // namespace spillway::test
