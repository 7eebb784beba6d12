// Every process case (cases_*.cpp) behaves the same with and without Spillway; also what each
// leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "tests/integration/process.h"
#include "tests/support/paths.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kBudget[] = "67108864";  // 64 MiB
const std::string kCases = BuildPath("tests-bin/processes/process_cases");

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "processes-" + std::to_string(getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Environment Bare() const {
    return {{"LD_LIBRARY_PATH", SimulatorFolder()},
            {"SPILLWAY_SIM_PROFILE", "h200"},
            {"SPILLWAY_SIM_STATS", folder_ + "/statistics.json"}};
  }
  Environment Preloaded() const {
    Environment environment = Bare();
    environment["LD_PRELOAD"] = PreloadLibrary();
    environment["SPILLWAY_DRIVER"] = SimulatedDriver();
    environment["SPILLWAY_BUDGET"] = kBudget;
    environment["SPILLWAY_REPORT"] = folder_ + "/report.json";
    return environment;
  }
  static Ended Live(const std::string& name, const Environment& environment) {
    return RunProgram({kCases, name}, environment);
  }
  // Starts it like users: `spillway run` with a report.
  Ended Launch(const std::vector<std::string>& command) const {
    std::vector<std::string> words = {SpillwayCommand(),
                                      "run",
                                      "--quiet",
                                      "--simulate=h200",
                                      "--budget=64MiB",
                                      "--report=" + folder_ + "/report.json",
                                      "--"};
    words.insert(words.end(), command.begin(), command.end());
    return RunProgram(words,
                      {{"HOME", folder_}, {"SPILLWAY_SIM_STATS", folder_ + "/statistics.json"}});
  }
  std::string File(const std::string& name) const { return FileText(folder_ + "/" + name); }
  static unsigned long long Number(const std::string& text, const std::string& field) {
    std::smatch match;
    return std::regex_search(text, match, std::regex("\"?" + field + "\"?:? ?(\\d+)"))
               ? std::stoull(match[1])
               : ~0ull;
  }

  std::string folder_;
};

class ProcessLifeTest : public ProcessTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ProcessLifeTest, BehavesAsWithoutSpillway) {
  const Ended bare = Live(GetParam(), Bare());
  fs::remove(folder_ + "/statistics.json");

  const Ended preloaded = Live(GetParam(), Preloaded());

  EXPECT_EQ(preloaded.exit_code, bare.exit_code);
  EXPECT_EQ(preloaded.standard_output, bare.standard_output);
  EXPECT_EQ(preloaded.standard_error, bare.standard_error);
  const std::string statistics = File("statistics.json");
  if (statistics.empty()) return;  // it ended without the exit at which the simulator writes them
  EXPECT_LE(Number(statistics, "device_bytes_peak"), std::stoull(kBudget));
  EXPECT_EQ(Number(statistics, "unmapped_while_in_use"), 0u);
  EXPECT_EQ(Number(statistics, "illegal_accesses"), 0u);
}

std::string NameOf(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

// Reported by users of other projects, by number.
INSTANTIATE_TEST_SUITE_P(PeersT9, ProcessLifeTest,
                         ::testing::Values("ledger_walk", "ledger_walk_killed"), NameOf);
INSTANTIATE_TEST_SUITE_P(PeersT13, ProcessLifeTest,
                         ::testing::Values("primary_context_anew", "contexts_come_and_go"), NameOf);
INSTANTIATE_TEST_SUITE_P(PeersT14, ProcessLifeTest,
                         ::testing::Values("fork_before", "fork_after", "fork_in_child",
                                           "fork_chain", "fork_exec", "vfork_exec", "posix_spawn",
                                           "pre_fork", "fork_storm", "fork_while_planning"),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(PeersT16, ProcessLifeTest,
                         ::testing::Values("exit_during_work", "return_during_work",
                                           "underscore_exit", "quick_exit", "abort", "terminated",
                                           "exit_from_thread", "static_destructor",
                                           "handler_before_first_call", "handler_after_first_call",
                                           "first_call_at_exit", "thread_local_destructor"),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Surroundings, ProcessLifeTest,
                         ::testing::Values("signal_storm", "interrupted_calls", "signals_stay",
                                           "dlclose", "many_threads"),
                         NameOf);

TEST_F(ProcessTest, ForkedChildIsRefusedByTheDriverAndItsParentContinues) {
  const Ended ended = Live("fork_after", Preloaded());

  EXPECT_THAT(ended.standard_output, HasSubstr("init 3"));
  EXPECT_THAT(ended.standard_output, HasSubstr("child 0"));
  EXPECT_THAT(File("report.json"), HasSubstr("\"ended\": true"));
}

TEST_F(ProcessTest, AllChildrenOfAForkStormAreRefused) {
  EXPECT_EQ(Live("fork_storm", Preloaded()).standard_output, "300 of 300 children were refused\n");
}

TEST_F(ProcessTest, ForkingProcessIsPlannedFor) {
  EXPECT_EQ(Live("fork_while_planning", Preloaded()).standard_output,
            "144 of 144 children ended well\n");
  EXPECT_THAT(File("report.json"), Not(HasSubstr("\"plans_adopted\": 0")));
}

TEST_F(ProcessTest, WorkersForkedBeforeCudaHaveTheirOwnBudgets) {
  EXPECT_EQ(Live("pre_fork", Preloaded()).standard_output, "4 workers\n");
}

TEST_F(ProcessTest, ExitsAmongWorkingThreadsSucceed) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Live("exit_during_work", Preloaded()).exit_code, 7);
}

TEST_F(ProcessTest, CaughtExceptionLeavesNothingBehind) {
  EXPECT_EQ(Live("exceptions", Preloaded()).standard_output,
            Live("exceptions", Bare()).standard_output);
}

// After a signal or _exit, the report is that of the last wait for the device.
TEST_F(ProcessTest, TerminatedProcessLeavesAReport) {
  const Ended ended = Launch({kCases, "terminated"});

  EXPECT_EQ(ended.exit_code, 128 + SIGTERM);
  const std::string report = File("report.json");
  EXPECT_THAT(report, HasSubstr("\"ended\": false"));
  EXPECT_EQ(Number(report, "budget_bytes"), std::stoull(kBudget));
  EXPECT_GT(Number(report, "launches"), 0u);
  EXPECT_NE(Number(report, "launches"), ~0ull);
}

TEST_F(ProcessTest, ProcessThatEndsByUnderscoreExitLeavesAReport) {
  EXPECT_EQ(Launch({kCases, "underscore_exit"}).exit_code, 9);
  EXPECT_THAT(File("report.json"), HasSubstr("\"ended\": false"));
}

TEST_F(ProcessTest, NothingButTheReportIsLeft) {
  Live("terminated", Preloaded());
  Live("compute", Preloaded());

  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("report.json", "statistics.json"));
  EXPECT_THAT(File("report.json"), HasSubstr("\"ended\": true"));
}

// Settings are the launcher's, whatever happens to the environment afterwards.
TEST_F(ProcessTest, PeersT17_EditedEnvironmentDoesNotChangeTheBudget) {
  const Ended ended = Launch({kCases, "edited_environment"});

  EXPECT_EQ(Number(ended.standard_error, "total_bytes"), std::stoull(kBudget));
  EXPECT_LE(Number(File("statistics.json"), "device_bytes_peak"), std::stoull(kBudget));
  EXPECT_THAT(File("report.json"), HasSubstr("\"ended\": true"));
}

TEST_F(ProcessTest, PeersT17_EnvironmentEditedForAChildDoesNotChangeTheBudget) {
  const Ended ended = Launch(
      {"/bin/bash", "-c",
       "unset SPILLWAY_BUDGET; SPILLWAY_HOST_LIMIT=1 " + kCases + " edited_for_child; exit $?"});

  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(Number(ended.standard_error, "total_bytes"), std::stoull(kBudget));
}

// Programs without CUDA calls are unaffected; preload_silence tests more of them.
TEST_F(ProcessTest, PeersT4_ProgramsWithoutCudaAreUntouched) {
  for (const std::string command :
       {"true", "git --version", "curl --version", "perl -e 'print 5'"}) {
    const std::string name = command.substr(0, command.find(' '));
    const std::string if_present = "command -v " + name + " > /dev/null || exit 0; " + command;
    EXPECT_EQ(RunProgram({"bash", "-c", if_present}, Preloaded()),
              RunProgram({"bash", "-c", if_present}, Bare()))
        << command;
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ProcessTest, PythonsWaysToStartWorkersWork) {
  for (const char* way : {"spawn", "forkserver", "fork", "fork_after"}) {
    const Ended bare =
        RunProgram({"python3", SourcePath("tests/integration/processes/workers.py"), way}, Bare());
    const Ended preloaded = RunProgram(
        {"python3", SourcePath("tests/integration/processes/workers.py"), way}, Preloaded());

    EXPECT_EQ(bare.exit_code, 0) << way << bare.standard_error;
    EXPECT_EQ(preloaded.exit_code, 0) << way << preloaded.standard_error;
    EXPECT_EQ(preloaded.standard_output, bare.standard_output) << way;
  }
}

}  // namespace
}  // namespace spillway::test
