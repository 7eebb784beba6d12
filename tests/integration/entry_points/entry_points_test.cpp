// Every entry point leads to the same hooks, over the simulated driver and over one that records
// callers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/integration/entry_points/entry_paths.h"
#include "tests/integration/process.h"

namespace spillway::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using Command = std::vector<std::string>;

const std::string kDriverFolder = EntryDriverFolder();
const std::string kSearchedEntry = EntryPath("searched_entry");

// By its path, because one program opens the driver through a link in another folder.
Environment Bare() {
  return {{"LD_LIBRARY_PATH", kDriverFolder + ":" + EntryFolder()},
          {"SPILLWAY_SIM_PROFILE", kDriverFolder + "/profiles/h200.profile"}};
}

Environment Preloaded() {
  Environment environment = Bare();
  environment["LD_PRELOAD"] = PreloadLibrary();
  environment["SPILLWAY_DRIVER"] = EntryDriver();
  return environment;
}

std::string LastLine(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line;
  return last;
}

struct EntryPoint {
  const char* name;
  Command command;
};

void PrintTo(const EntryPoint& entry_point, std::ostream* out) { *out << entry_point.name; }

class EveryEntryPoint : public ::testing::TestWithParam<EntryPoint> {};

TEST_P(EveryEntryPoint, LeadsToTheHooks) {
  const Command& command = GetParam().command;

  const Ended bare = RunProgram(command, Bare());
  const Ended preloaded = RunProgram(command, Preloaded());

  // Then its hooked functions are ours, functions that the driver lacks are missing, and calls get
  // the driver's answers
  EXPECT_THAT(bare.standard_output, Not(HasSubstr("libspillway")));
  EXPECT_EQ(preloaded.exit_code, 0);
  EXPECT_EQ(preloaded.standard_error, "");
  EXPECT_THAT(preloaded.standard_output, HasSubstr("cuMemAlloc_v2 libspillway.so:cuMemAlloc_v2\n"));
  EXPECT_THAT(preloaded.standard_output, HasSubstr("cuLaunchKernel"));
  EXPECT_THAT(preloaded.standard_output, HasSubstr(" libspillway.so:cuLaunchKernel"));
  EXPECT_THAT(LastLine(preloaded.standard_output), "cuInit=0 cuDeviceGetCount=0 devices=1");
  EXPECT_EQ(LastLine(preloaded.standard_output), LastLine(bare.standard_output));
}

INSTANTIATE_TEST_SUITE_P(
    Driver, EveryEntryPoint,
    ::testing::Values(
        EntryPoint{"Linked", {EntryPath("linked_entry")}},
        EntryPoint{"DlopenBySoname", {kSearchedEntry, "dlsym", "libcuda.so.1"}},
        EntryPoint{"DlopenDeepbind", {kSearchedEntry, "dlsym", "libcuda.so.1", "deepbind"}},
        EntryPoint{"DlopenByDevelopmentName", {kSearchedEntry, "dlsym", "libcuda.so"}},
        EntryPoint{"DlopenByPath", {kSearchedEntry, "dlsym", EntryDriver()}},
        EntryPoint{"DlopenByPathDeepbind", {kSearchedEntry, "dlsym", EntryDriver(), "deepbind"}},
        EntryPoint{"Plugin", {kSearchedEntry, "plugin", EntryPath("liblinked_entry.so")}},
        EntryPoint{"PluginDeepbind",
                   {kSearchedEntry, "plugin", EntryPath("liblinked_entry.so"), "deepbind"}}),
    [](const auto& row) { return row.param.name; });

TEST(EntryPointsTest, DefaultAndNextLookupsFindTheHooks) {
  for (const char* scope : {"default", "next"}) {
    const Ended preloaded = RunProgram({kSearchedEntry, scope}, Preloaded());
    EXPECT_THAT(preloaded.standard_output,
                HasSubstr("cuMemAlloc_v2 libspillway.so:cuMemAlloc_v2\n"))
        << scope;
    EXPECT_THAT(preloaded.standard_output, HasSubstr("cuNoSuchFunction missing\n")) << scope;
    EXPECT_EQ(LastLine(preloaded.standard_output), "cuInit=0 cuDeviceGetCount=0 devices=1")
        << scope;
  }
}

TEST(EntryPointsTest, UnhookedLookupsReturnTheDriversPointer) {
  const Ended preloaded = RunProgram({kSearchedEntry, "dlsym", "libcuda.so.1"}, Preloaded());
  EXPECT_THAT(preloaded.standard_output,
              HasSubstr("cuDeviceGetCount libcuda.so.1:cuDeviceGetCount\n"));
  EXPECT_THAT(preloaded.standard_output, HasSubstr("cuNoSuchFunction missing\n"));
}

TEST(EntryPointsTest, ProcAddressOfBothInterfacesAndThroughItselfIsHooked) {
  const Ended preloaded = RunProgram({kSearchedEntry, "proc-address", "libcuda.so.1"}, Preloaded());
  EXPECT_EQ(preloaded.standard_output,
            "cuMemAlloc libspillway.so:cuMemAlloc_v2 libspillway.so:cuMemAlloc_v2\n"
            "cuLaunchKernel libspillway.so:cuLaunchKernel libspillway.so:cuLaunchKernel\n"
            "cuDeviceGetCount libcuda.so.1:cuDeviceGetCount libcuda.so.1:cuDeviceGetCount\n"
            "cuNoSuchFunction missing missing\n"
            "cuGetProcAddress libspillway.so:cuGetProcAddress_v2\n");
}

TEST(EntryPointsTest, OtherLinkNamespacesAreUnaffected) {
  const Command command = {kSearchedEntry, "dlsym", WitnessDriver(), "other-namespace"};
  const Ended bare = RunProgram(command, Bare());
  const Ended preloaded = RunProgram(command, Preloaded());
  EXPECT_EQ(preloaded, bare);
  EXPECT_THAT(bare.standard_output, HasSubstr("cuMemAlloc_v2 libwitness.so:cuMemAlloc_v2\n"));
}

TEST(EntryPointsTest, OtherLibrarysFunctionsOfEqualNamesAreUnaffected) {
  const Ended preloaded = RunProgram({kSearchedEntry, "dlsym", WitnessDriver()}, Preloaded());

  EXPECT_THAT(preloaded.standard_output, HasSubstr("cuMemAlloc_v2 libwitness.so:cuMemAlloc_v2\n"));
  EXPECT_THAT(preloaded.standard_output, Not(HasSubstr("libspillway")));
}

TEST(EntryPointsTest, PythonsCtypesGetsTheHooks) {
  const std::string script =
      "import ctypes\n"
      "driver = ctypes.CDLL('libcuda.so.1')\n"
      "devices = ctypes.c_int(-1)\n"
      "print(driver.cuInit(0), driver.cuDeviceGetCount(ctypes.byref(devices)), devices.value)\n"
      "print(ctypes.cast(driver.cuMemAlloc_v2, ctypes.c_void_p).value)\n"
      "ours = [line for line in open('/proc/self/maps') if 'libspillway' in line and ' r-xp ' in "
      "line]\n"
      "begin, end = (int(address, 16) for address in ours[0].split()[0].split('-'))\n"
      "print(begin <= ctypes.cast(driver.cuMemAlloc_v2, ctypes.c_void_p).value < end)\n";
  const Ended preloaded = RunProgram({"python3", "-c", script}, Preloaded());
  EXPECT_EQ(preloaded.exit_code, 0) << preloaded.standard_error;
  EXPECT_THAT(preloaded.standard_output, AllOf(HasSubstr("0 0 1\n"), EndsWith("True\n")));
}

TEST(EntryPointsTest, LookupsByTheDriverItselfAreUnaffected) {
  const std::string witness_file =
      ::testing::TempDir() + "entry_points_itself_" + std::to_string(getpid());
  std::remove(witness_file.c_str());
  Environment environment = Preloaded();
  environment["SPILLWAY_DRIVER"] = WitnessDriver();
  environment["ENTRY_POINTS_WITNESS_FILE"] = witness_file;
  RunProgram({EntryPath("linked_entry")}, environment);
  EXPECT_EQ(FileText(witness_file),
            "cuInit from libspillway.so\nitself finds cuMemAlloc_v2 in libwitness.so\n");
}

TEST(EntryPointsTest, FunctionNewerThanOurListIsFoundInTheDriver) {
  Environment environment = Preloaded();
  environment["SPILLWAY_DRIVER"] = WitnessDriver();
  const Ended by_name = RunProgram({kSearchedEntry, "dlsym", "libcuda.so.1"}, environment);
  const Ended by_plugin =
      RunProgram({kSearchedEntry, "late-plugin", EntryPath("libyounger_entry.so")}, environment);
  EXPECT_THAT(by_name.standard_output,
              HasSubstr("cuFromTheFuture libwitness.so:cuFromTheFuture\n"));
  EXPECT_EQ(by_plugin.standard_output, "cuFromTheFuture libwitness.so:cuFromTheFuture\n");
}

TEST(EntryPointsTest, ManyFirstCallsAtOnceAllSucceed) {
  for (int run = 0; run < 20; ++run) {
    const Ended ended =
        RunProgram({EntryPath("crowded_entry"), EntryPath("libearly_entry.so")}, Preloaded());
    ASSERT_EQ(ended.standard_output, "13 of 13\n") << "run " << run;
  }
}

TEST(EntryPointsTest, ForwardedCallsKeepTheirArgumentsAtTheFirstCallAndLater) {
  Environment environment = Preloaded();
  environment["SPILLWAY_DRIVER"] = WitnessDriver();
  const std::string once =
      "cuLinkAddData_v2 0xa1 1 0xc3 0xd4 0xe5 6 0xf7 0x18\n"
      "cuTexRefSetMipmapLevelClamp 0x19 1.5 -2.25\n";
  EXPECT_EQ(RunProgram({EntryPath("argument_entry")}, environment).standard_output, once + once);
}

#if ENTRY_POINTS_HAVE_RUNTIME

class RealRuntime : public ::testing::TestWithParam<const char*> {};

TEST_P(RealRuntime, ReachesTheDriverThroughOurEntryPoints) {
  const std::string witness_file =
      ::testing::TempDir() + "entry_points_witness_" + std::to_string(getpid()) + GetParam();
  std::remove(witness_file.c_str());
  Environment environment = Preloaded();
  environment["SPILLWAY_DRIVER"] = WitnessDriver();
  environment["ENTRY_POINTS_WITNESS_FILE"] = witness_file;

  const Ended ended = RunProgram({EntryPath(GetParam())}, environment);

  // Then each of the runtime's 440 requests and its cuInit reached the driver from our library
  std::istringstream calls(FileText(witness_file));
  int requests = 0;
  int initialisations = 0;
  for (std::string call; std::getline(calls, call);) {
    if (call.starts_with("itself ")) continue;
    EXPECT_THAT(call, EndsWith(" from libspillway.so"));
    requests += call.starts_with("cuGetProcAddress_v2 ");
    initialisations += call.starts_with("cuInit ");
  }
  EXPECT_EQ(requests, 440);
  EXPECT_GE(initialisations, 1);
  EXPECT_THAT(ended.standard_output, HasSubstr("cudaDriverGetVersion=0 version=13000\n"));
}

TEST_P(RealRuntime, WithoutADriverReportsTheSameError) {
  const Command command = {EntryPath(GetParam())};
  const Environment bare = {{"LD_LIBRARY_PATH", EntryFolder()}};
  Environment preloaded = bare;
  preloaded["LD_PRELOAD"] = PreloadLibrary();
  EXPECT_EQ(RunProgram(command, preloaded), RunProgram(command, bare));
}

INSTANTIATE_TEST_SUITE_P(Linked, RealRuntime,
                         ::testing::Values("runtime_entry_shared", "runtime_entry_static"),
                         [](const auto& row) { return std::string(row.param); });

#endif  // ENTRY_POINTS_HAVE_RUNTIME

TEST(EntryPointsTest, LinkedProgramWithoutADriverGetsNoDevice) {
  const Ended ended = RunProgram({EntryPath("linked_entry")}, {{"LD_PRELOAD", PreloadLibrary()}});
  EXPECT_EQ(LastLine(ended.standard_output), "cuInit=100 cuDeviceGetCount=100 devices=-1");
  EXPECT_EQ(ended.standard_error, "");
}

TEST(EntryPointsTest, UnusableRequestedDriverIsNamedAndNotReplaced) {
  Environment environment = Preloaded();
  environment["SPILLWAY_DRIVER"] = "/nowhere/libcuda.so.1";
  const Ended ended = RunProgram({EntryPath("linked_entry")}, environment);
  EXPECT_EQ(LastLine(ended.standard_output), "cuInit=100 cuDeviceGetCount=100 devices=-1");
  EXPECT_THAT(ended.standard_error,
              HasSubstr("SPILLWAY_DRIVER=/nowhere/libcuda.so.1 cannot be used"));
}

TEST(EntryPointsTest, OurLibraryIsNotMistakenForTheDriver) {
  Environment environment = Preloaded();
  environment["SPILLWAY_DRIVER"] = PreloadLibrary();
  const Ended ended = RunProgram({EntryPath("linked_entry")}, environment);
  EXPECT_EQ(LastLine(ended.standard_output), "cuInit=100 cuDeviceGetCount=100 devices=-1");
  EXPECT_THAT(ended.standard_error, HasSubstr("it is no CUDA driver"));
}

TEST(EntryPointsTest, DriverIsFoundBehindACopyOfOurLibrary) {
  // Given no named driver, and on the library path a copy of this library before a driver with a
  // newer function
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                       ("entry_points_search_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "copy");
  std::filesystem::create_directories(folder / "driver");
  std::filesystem::copy_file(PreloadLibrary(), folder / "copy" / "libcuda.so.1");
  std::filesystem::create_symlink(WitnessDriver(), folder / "driver" / "libcuda.so.1");
  const Environment environment = {
      {"LD_PRELOAD", PreloadLibrary()},
      {"LD_LIBRARY_PATH", (folder / "copy").string() + ":" + (folder / "driver").string()}};

  const Ended ended = RunProgram({kSearchedEntry, "dlsym", "libcuda.so.1"}, environment);

  EXPECT_THAT(ended.standard_output, HasSubstr("cuFromTheFuture libcuda.so.1:cuFromTheFuture\n"));
  EXPECT_THAT(ended.standard_output, HasSubstr("cuMemAlloc_v2 libspillway.so:cuMemAlloc_v2\n"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spillway::test
