// `spillway plan` and `spillway trace`, from the command line to their output files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/failure.h"
#include "cli/options/option.h"
#include "cli/planner/advise_command.h"
#include "cli/planner/plan_command.h"
#include "cli/planner/profile_json.h"
#include "cli/planner/profile_source.h"
#include "scheduler/trace/file/trace_file.h"
#include "tests/support/paths.h"

namespace spillway::cli {
namespace {

using scheduler::IterationProfile;
using ::testing::HasSubstr;

struct Ran {
  int exit_code = -1;
  std::string output;
};

Ran Spillway(const std::string& arguments) {
  const std::string command = test::SpillwayCommand() + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Ran ran;
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof part, pipe)) ran.output.append(part, size);
  ran.exit_code = WEXITSTATUS(pclose(pipe));
  return ran;
}

std::string TemporaryPath(const std::string& name) {
  return ::testing::TempDir() + "planner_cli_" + name;
}

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(OptionTest, ProfilesInHelpAndCompletionAreTheKnownDevices) {
  const Option device = {"device", 'd', Value("PROFILE", Kind::kWords, kProfileWords), ""};
  EXPECT_THAT(scheduler::networks::DeviceNames(),
              ::testing::UnorderedElementsAreArray(WordsOf(device)));
}

IterationProfile Alexnet() { return LoadProfile("network:alexnet:4", LoadDevice("k40c")).profile; }

TEST(ProfileJsonTest, ProfileSurvivesJson) {
  bool modelled = true;
  EXPECT_EQ(*ProfileFromJson(ProfileToJson(Alexnet()), {}, modelled), Alexnet());
  EXPECT_FALSE(modelled);
}

TEST(ProfileJsonTest, GeneratedTracesGetDurationsFromTheDevice) {
  const std::string text = R"({"name": "n", "batch": 2,
    "tensors": [{"name": "w", "kind": "weight", "bytes": 8}, {"name": "y", "kind": "act", "bytes": 4}],
    "ops": [{"name": "f", "type": "conv", "phase": "F", "reads": [0], "writes": [1], "flops": 1000, "bytes": 12,
             "ws": [["gemm", 0, 1.0], ["winograd", 64, 2.5]]}]})";
  bool modelled = false;
  const IterationProfile profile =
      *ProfileFromJson(text, {1'000'000'000, 1'000'000'000, 0}, modelled);
  EXPECT_TRUE(modelled);
  EXPECT_TRUE(profile.buffers[0].persistent);
  EXPECT_EQ(profile.operations[0].duration_ns, 1000);
  EXPECT_EQ(profile.operations[0].workspaces[1].duration_ns, 400);
}

TEST(ProfileJsonTest, InvalidProfileIsRefusedWithTheReason) {
  bool modelled = false;
  EXPECT_THAT(ProfileFromJson("{", {}, modelled).text(), HasSubstr("line 1, column 2"));
  EXPECT_THAT(
      ProfileFromJson(R"({"buffers": [{"name": "x"}], "operations": []})", {}, modelled).text(),
      HasSubstr("'size_bytes' not found"));
}

TEST(ProfileJsonTest, FailureNamesTheFile) {
  const std::string path = TemporaryPath("broken.json");
  std::ofstream(path) << "{";
  const Ran ran = Spillway("plan " + path);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.output, HasSubstr("cannot use " + path));
}

TEST(BudgetTest, IsBytesOrAPercentageOfTheDeviceOrThePeak) {
  EXPECT_EQ(ResolveBudget("1MiB", 1000, 500), 1 << 20);
  EXPECT_EQ(ResolveBudget("50%", 1000, 500), 500);
  EXPECT_EQ(ResolveBudget("50%peak", 1000, 500), 250);
  EXPECT_THROW(ResolveBudget("many", 1000, 500), Failure);
}

TEST(PlanCommandTest, PlansWithinTheBudgetAndReportsAsJson) {
  const Ran ran = Spillway("plan network:alexnet:64 --device k40c --budget 70%peak --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  EXPECT_TRUE(json.at("modelled"));
  const nlohmann::json& plan = json.at("plans").at(0);
  EXPECT_TRUE(plan.at("runs"));
  EXPECT_LE(plan.at("peak_bytes"), json.at("budget_bytes"));
  EXPECT_GE(plan.at("iteration_ns"), json.at("lower_bound").at("iteration_ns"));
  EXPECT_FALSE(plan.at("actions").empty());
}

TEST(PlanCommandTest, ComparesExplainsAndDraws) {
  const std::string svg = TemporaryPath("plan.svg"), perfetto = TemporaryPath("plan.json");
  const Ran ran = Spillway("plan network:alexnet:64 -d k40c -b 70%peak -s all --explain --svg " +
                           svg + " --perfetto " + perfetto);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("modelled from layer shapes, not measured"));
  EXPECT_THAT(ran.output, HasSubstr("vdnn-all"));
  EXPECT_THAT(ran.output, HasSubstr(", idle for "));
  EXPECT_THAT(ran.output, HasSubstr("copy takes "));
  EXPECT_THAT(TextOf(svg), HasSubstr("</svg>"));
  const nlohmann::json events = nlohmann::json::parse(TextOf(perfetto)).at("traceEvents");
  EXPECT_GT(events.size(), 60u);
}

TEST(PlanCommandTest, DrawsTheSlowDownOfEveryStrategyOverBudgets) {
  const std::string svg = TemporaryPath("curve.svg");
  ASSERT_EQ(Spillway("plan network:alexnet:64 -d k40c -b 80%peak --curve " + svg).exit_code, 0);
  const std::string text = TextOf(svg);
  EXPECT_THAT(text, HasSubstr(">lower bound<"));
  EXPECT_THAT(text, HasSubstr(">spillway<"));
  EXPECT_THAT(text, HasSubstr(">capuchin"));
  EXPECT_THAT(text, HasSubstr("</svg>"));
}

TEST(PlanCommandTest, RepairsAPlanThatDoesNotRunAndGivesItAddresses) {
  const std::string command =
      "plan network:alexnet:64 -d k40c -b 70%peak -s superneurons-liveness --json";
  EXPECT_EQ(Spillway(command).exit_code, 1);

  const Ran ran = Spillway(command + " --repair --place");

  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json plan = nlohmann::json::parse(ran.output).at("plans").at(0);
  EXPECT_THAT(plan.at("actions").dump(), HasSubstr("without it the budget would not hold"));
  EXPECT_GT(plan.at("placements").size(), 50u);
  EXPECT_GE(plan.at("arena_bytes"), plan.at("peak_bytes").get<int64_t>() / 2);
}

TEST(PlanCommandTest, BudgetTooSmallForTheIterationExitsWithOne) {
  const Ran ran = Spillway("plan network:alexnet:16 -d k40c -b 1MiB");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.output, HasSubstr("are needed"));
}

TEST(PlanCommandTest, WrongCommandLineListsTheChoices) {
  EXPECT_EQ(Spillway("plan").exit_code, 2);
  EXPECT_THAT(Spillway("plan network:alexnet -s nosuch").output, HasSubstr("there are all, "));
  EXPECT_THAT(Spillway("plan network:nosuch").output, HasSubstr("resnet50"));
  EXPECT_THAT(Spillway("plan network:alexnet -d k41").output, HasSubstr("k40c"));
  EXPECT_THAT(Spillway("plan /nonexistent").output, HasSubstr("cannot read"));
  EXPECT_THAT(Spillway("plan /").output, HasSubstr("it is a folder"));
  EXPECT_EQ(Spillway("plan network:alexnet:0").exit_code, 2);
}

TEST(AdviseCommandTest, ProposesABatchWithinTheBudgetAndScalesTheLearningRate) {
  const Ran ran = Spillway(
      "advise network:resnet50:16 network:resnet50:32 -d k40c --most-batch 1024 --learning-rate "
      "0.1 "
      "--base-batch 32 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  const int64_t batch_size = json.at("batch_size");
  EXPECT_GE(batch_size, 32);
  EXPECT_LE(batch_size, json.at("most_batch"));
  EXPECT_EQ(json.at("learning_rate_nano"), 100'000'000 * batch_size / 32);
}

TEST(AdviseCommandTest, NeedsTwoBatchSizes) {
  EXPECT_EQ(Spillway("advise network:resnet50:16").exit_code, 2);
  EXPECT_EQ(Spillway("advise network:resnet50:16 network:resnet50:16").exit_code, 1);
}

TEST(LearningRateTest, IsADecimalNumber) {
  EXPECT_EQ(ParseLearningRate("0.1"), 100'000'000);
  EXPECT_EQ(ParseLearningRate("2"), 2'000'000'000);
  EXPECT_EQ(ParseLearningRate("0.000000001"), 1);
  for (const char* wrong : {"", "-1", "1e-3", "0", "0.0000000001", "1.2.3", "10000"})
    EXPECT_THROW(ParseLearningRate(wrong), Failure) << wrong;
}

TEST(TraceCommandTest, ConvertsBetweenTheFormsWithoutLoss) {
  const std::string json = TemporaryPath("a.json"), ours = TemporaryPath("a.profile"),
                    again = TemporaryPath("b.json");
  ASSERT_EQ(Spillway("trace convert network:alexnet:4 " + json + " -d k40c").exit_code, 0);
  ASSERT_EQ(Spillway("trace convert " + json + " " + ours).exit_code, 0);
  ASSERT_EQ(Spillway("trace convert " + ours + " " + again).exit_code, 0);
  EXPECT_EQ(TextOf(json), TextOf(again));
  EXPECT_THAT(Spillway("trace print " + ours).output, HasSubstr("POOL5"));
}

TEST(TraceCommandTest, TrimsTracesAndRefusesDamagedFiles) {
  using namespace scheduler;
  EventTrace trace{"job", {"kernel"}, {}};
  trace.events = {{EventKind::kAllocate, 0, 1, 64, -1, 0, 0, {}},
                  {EventKind::kOperation, 1, -1, 0, 0, 0, 10, {{1, false, true}}},
                  {EventKind::kOperation, 2, -1, 0, 0, 0, 10, {{1, true, true}}}};
  const std::string whole = TemporaryPath("t.trace"), part = TemporaryPath("part.trace"),
                    broken = TemporaryPath("x.trace");
  WriteBytes(whole, WriteTrace(trace));
  ASSERT_EQ(Spillway("trace trim " + whole + " " + part + " --from 2 --until 3").exit_code, 0);
  EXPECT_THAT(Spillway("trace print " + part).output, HasSubstr("2 events"));
  EXPECT_EQ(Spillway("trace trim " + whole + " " + part + " --from 3 --until 9").exit_code, 2);
  std::vector<uint8_t> bytes = WriteTrace(trace);
  bytes.resize(bytes.size() / 2);
  WriteBytes(broken, bytes);
  EXPECT_THAT(Spillway("trace print " + broken).output, HasSubstr("truncated or damaged"));
}

}  // namespace
}  // namespace spillway::cli
