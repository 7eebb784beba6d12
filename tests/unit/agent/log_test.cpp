#include "agent/loop/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace spillway::agent {
namespace {

std::string Logged() {
  testing::internal::CaptureStderr();
  StartLog("info");
  LogNote("hidden at this level");
  LogInfo("job started");
  LogWarning("slab lost");
  LogError("disk full");
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, JournalLinesBeginWithTheirPriority) {
  setenv("JOURNAL_STREAM", "8:1234", 1);
  const std::string lines = Logged();
  unsetenv("JOURNAL_STREAM");
  EXPECT_EQ(lines, "<6>job started\n<4>slab lost\n<3>disk full\n");
}

TEST(LogTest, OtherLinesBeginWithTheTimeAndTheLevel) {
  unsetenv("JOURNAL_STREAM");
  const std::string lines = Logged();
  EXPECT_EQ(lines.find("<6>"), std::string::npos);
  EXPECT_NE(lines.find("Z info job started\n"), std::string::npos) << lines;
}

std::vector<nlohmann::json> LinesOf(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(LogTest, JsonLinesAreOneObjectEachWhateverTheyHold) {
  unsetenv("JOURNAL_STREAM");
  JobReport job;
  job.name = "local-1";
  job.command = "a \"b\"\n{\xff";
  job.age_ns = 1'500'000'000;
  testing::internal::CaptureStderr();
  StartLog("info", LogFormat::kJson);
  LogNote("hidden at this level");
  LogWarning("slab \"lost\"\nand {} found");
  LogInfo(EndOf(job));
  const auto lines = LinesOf(testing::internal::GetCapturedStderr());
  StartLog("info");

  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["message"], "slab \"lost\"\nand {} found");
  EXPECT_EQ(lines[0]["level"], "warning");
  EXPECT_EQ(lines[0]["time"].get<std::string>().size(),
            std::string("2026-01-02T03:04:05.678Z").size());
  EXPECT_EQ(lines[1]["message"], "job ended");
  EXPECT_EQ(lines[1]["job"], "local-1");
  EXPECT_EQ(lines[1]["seconds"], 1.5);
  EXPECT_EQ(lines[1]["uid"], 0);
  EXPECT_EQ(lines[1]["exit"], "unknown");
}

TEST(LogTest, JsonLinesForTheJournalHaveTheirPriorityFirst) {
  setenv("JOURNAL_STREAM", "8:1234", 1);
  testing::internal::CaptureStderr();
  StartLog("info", LogFormat::kJson);
  LogError("disk full");
  const std::string line = testing::internal::GetCapturedStderr();
  unsetenv("JOURNAL_STREAM");
  StartLog("info");
  EXPECT_TRUE(line.starts_with("<3>{\"time\":\"")) << line;
}

}  // namespace
}  // namespace spillway::agent
