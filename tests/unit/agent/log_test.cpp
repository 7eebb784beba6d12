#include "agent/loop/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>

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

}  // namespace
}  // namespace spillway::agent
