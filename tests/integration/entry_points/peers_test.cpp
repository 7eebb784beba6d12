// Cases that users of other projects have reported; each test has its line's name in that list (T1,
// T2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "tests/integration/entry_points/entry_paths.h"
#include "tests/integration/entry_points/tags.h"
#include "tests/integration/process.h"

namespace spillway::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDriverFolder = EntryDriverFolder();
const std::string kYoungerDriver = EntryPath("younger/libcuda.so.1");
const std::string kOlderDriver = EntryPath("older/libcuda.so.1");

const std::set<std::string> kHooks = {
#define SPILLWAY_HOOK(name, ...) #name,
#include "interposer/driver/hook_table.inc"
};

Environment Bare(const std::string& driver = EntryDriver()) {
  return {{"LD_LIBRARY_PATH", std::filesystem::path(driver).parent_path()},
          {"SPILLWAY_SIM_PROFILE", kDriverFolder + "/profiles/h200.profile"}};
}

Environment Preloaded(const std::string& driver = EntryDriver()) {
  Environment environment = Bare(driver);
  environment["LD_PRELOAD"] = PreloadLibrary();
  environment["SPILLWAY_DRIVER"] = driver;
  return environment;
}

TEST(PeersT1, EveryHookCallsTheDriversFunctionOfItsOwnName) {
  const Ended ended = RunProgram({EntryPath("tagged_entry")}, Preloaded(EntryPath("libtagged.so")));
  EXPECT_EQ(ended.standard_output, std::to_string(std::size(kTaggedSymbols)) + " answered\n");
  EXPECT_EQ(ended.exit_code, 0);
}

// With the hooks' locations in place of the driver's.
std::string Hooked(const std::string& bare) {
  std::istringstream words(bare);
  std::string hooked;
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    const std::string symbol = colon == std::string::npos ? "" : word.substr(colon + 1);
    hooked += (kHooks.contains(symbol) ? "libspillway.so:" + symbol : word) + " ";
  }
  return hooked;
}

TEST(PeersT2, UnusualRequestsGetTheDriversOwnAnswers) {
  const Ended bare = RunProgram({EntryPath("edge_requests_entry")}, Bare());
  const Ended preloaded = RunProgram({EntryPath("edge_requests_entry")}, Preloaded());
  ASSERT_EQ(bare.exit_code, 0);
  EXPECT_EQ(preloaded.exit_code, 0);
  std::istringstream bare_lines(bare.standard_output), preloaded_lines(preloaded.standard_output);
  int lines = 0;
  for (std::string expected, found; std::getline(bare_lines, expected); ++lines) {
    ASSERT_TRUE(std::getline(preloaded_lines, found));
    EXPECT_EQ(found + " ", Hooked(expected));
  }
  EXPECT_EQ(lines, 7 * 5 * 4 + 1);
}

Environment Launcher(const std::string& driver) {
  Environment environment = Bare(driver);
  environment["SPILLWAY_DRIVER"] = driver;
  environment["XDG_STATE_HOME"] = ::testing::TempDir();
  return environment;
}

TEST(PeersT3, ProgramBoundToANewerDriverRunsUnderTheLauncherAndItsCallsAreListed) {
  // Given a driver with fifty functions that the preload library does not know, and a program that
  // needs one to start
  const std::string report =
      ::testing::TempDir() + "peers_t3_" + std::to_string(getpid()) + ".json";
  const Ended bare = RunProgram({EntryPath("future_entry")}, Bare(kYoungerDriver));
  ASSERT_EQ(bare.standard_output, "linked 9100\nlooked up 2450\n");

  const Ended run =
      RunProgram({SpillwayCommand(), "run", "--report", report, "--", EntryPath("future_entry")},
                 Launcher(kYoungerDriver));

  // Then it behaves as without Spillway, the launcher reports the functions, and the report names
  // each of the others once
  EXPECT_EQ(run.standard_output, bare.standard_output);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.standard_error,
              HasSubstr("the program needs cuFromTheFuture00 of a driver that is younger"));
  const std::string text = FileText(report);
  std::filesystem::remove(report);
  EXPECT_THAT(text, HasSubstr("\"unknown_functions\": 49,"));
  EXPECT_THAT(text, HasSubstr("[\"cuFromTheFuture01\", \"cuFromTheFuture02\", "));
}

TEST(PeersT3, WithoutTheLauncherSuchAProgramGetsTheMissingName) {
  const Ended ended = RunProgram({EntryPath("future_entry")}, Preloaded(kYoungerDriver));
  EXPECT_EQ(ended.exit_code, 127);
  EXPECT_THAT(ended.standard_error, HasSubstr("undefined symbol: cuFromTheFuture00"));
}

TEST(PeersT3, ProgramWithoutNewFunctionsLoadsNoDriverAtItsStart) {
  const Ended run =
      RunProgram({SpillwayCommand(), "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"},
                 Launcher(kYoungerDriver));
  EXPECT_THAT(run.standard_output, Not(HasSubstr("libcuda.so.1")));
  EXPECT_EQ(run.standard_error, "");
}

TEST(PeersT3, DoctorNamesAdditionalFunctionsOfANewerDriver) {
  const Ended young = RunProgram({SpillwayCommand(), "doctor"}, Launcher(kYoungerDriver));
  const Ended known = RunProgram({SpillwayCommand(), "doctor"}, Launcher(EntryDriver()));
  EXPECT_THAT(young.standard_output,
              HasSubstr("50 that this Spillway does not know: cuFromTheFuture00, "));
  EXPECT_THAT(known.standard_output, HasSubstr("all are known"));
}

TEST(PeersT3, FunctionsThatAnOlderDriverLacksAreMissingAndTheRestIsHooked) {
  const std::vector<std::string> command = {EntryPath("searched_entry"), "names", "libcuda.so.1",
                                            EntryPath("driver_symbols.txt")};
  const Ended bare = RunProgram(command, Bare(kOlderDriver));
  ASSERT_THAT(bare.standard_output, HasSubstr("cuLaunchKernelEx missing\n"));
  ASSERT_THAT(bare.standard_output, HasSubstr("cuGetProcAddress libcuda.so.1:cuGetProcAddress\n"));

  const Ended preloaded = RunProgram(command, Preloaded(kOlderDriver));

  // Then missing names stay missing, and found ones are hooked or the driver's
  std::istringstream bare_lines(bare.standard_output), preloaded_lines(preloaded.standard_output);
  for (std::string expected, found; std::getline(bare_lines, expected);) {
    ASSERT_TRUE(std::getline(preloaded_lines, found));
    EXPECT_EQ(found + " ", Hooked(expected));
  }
}

TEST(PeersT3, LinkedCallThatAnOlderDriverLacksReturnsNotFound) {
  // Given a process that finds our symbols, but not in the driver: one forwarded, one hooked
  const std::string script =
      "import ctypes\n"
      "linked = ctypes.CDLL(None)\n"
      "print(linked.cuLibraryLoadData(0, 0, 0, 0, 0, 0, 0, 0), linked.cuLaunchKernelEx(0, 0, 0, "
      "0))\n";
  const Ended ended = RunProgram({"python3", "-c", script}, Preloaded(kOlderDriver));
  EXPECT_EQ(ended.standard_output, "500 500\n");  // CUDA_ERROR_NOT_FOUND
}

std::string Joined(const std::vector<std::string>& libraries) {
  std::string text;
  for (const std::string& library : libraries) text += (text.empty() ? "" : ":") + library;
  return text;
}

TEST(PeersT5, LibrariesBeforeOursFindOursNextOnEveryThreadAndCall) {
  // Given three libraries before ours, each of which looks the next function up
  Environment environment = Preloaded();
  environment["LD_PRELOAD"] = Joined({EntryPath("libchain1.so"), EntryPath("libchain2.so"),
                                      EntryPath("libchain3.so"), PreloadLibrary()});

  // When the program calls twice on two threads, then each call passes all of them and reaches the
  // driver
  const Ended ended = RunProgram({EntryPath("chained_entry")}, environment);
  const std::string once = "1 2 3 answer 0 devices 1\n";
  EXPECT_EQ(ended.standard_output, once + once + once + once);
}

TEST(PeersT5, LibrariesBehindOursAreNotReachedByTheProgramsCalls) {
  Environment environment = Preloaded();
  environment["LD_PRELOAD"] = Joined({PreloadLibrary(), EntryPath("libchain1.so")});
  const Ended ended = RunProgram({EntryPath("chained_entry")}, environment);
  EXPECT_THAT(ended.standard_output, Not(HasSubstr("1 answer")));
  EXPECT_THAT(ended.standard_output, HasSubstr("answer 0 devices 1\n"));
}

class PeersT6 : public ::testing::TestWithParam<bool> {};

TEST_P(PeersT6, AnotherLibraryThatExportsDlsymCoexists) {
  Environment environment = Preloaded();
  const bool is_first = GetParam();
  const std::string other = EntryPath("libsecond_dlsym.so");
  environment["LD_PRELOAD"] =
      is_first ? Joined({other, PreloadLibrary()}) : Joined({PreloadLibrary(), other});

  const Ended ended =
      RunProgram({EntryPath("searched_entry"), "dlsym", "libcuda.so.1"}, environment);
  EXPECT_THAT(ended.standard_output, HasSubstr("cuMemAlloc_v2 libspillway.so:cuMemAlloc_v2\n"));
  EXPECT_THAT(ended.standard_output, HasSubstr("cuInit=0 cuDeviceGetCount=0 devices=1\n"));
  EXPECT_EQ(ended.standard_output.find("seen by the other") != std::string::npos, is_first);
}

INSTANTIATE_TEST_SUITE_P(Order, PeersT6, ::testing::Bool(),
                         [](const auto& row) { return row.param ? "OtherFirst" : "OtherBehind"; });

}  // namespace
}  // namespace spillway::test
