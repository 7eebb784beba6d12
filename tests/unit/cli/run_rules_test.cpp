#include "cli/run_rules.h"

#include <gtest/gtest.h>

#include "cli/agent_requirement.h"
#include "cli/failure.h"

namespace spillway::cli {
namespace {

int CodeOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Failure& failure) {
    return failure.exit_code();
  }
  return 0;
}

RunOptions Options(std::vector<std::string> words) {
  words.insert(words.begin(), "run");
  words.insert(words.end(), {"--", "true"});
  return ParseRunOptions(words);
}

TEST(RunRulesTest, ReadsTheAdministratorsRules) {
  const RunRules rules =
      ParseRunRules("# of this cluster\n\n agent = \"required\"  # always\r\nsocket=\"/s\"", "f");

  EXPECT_TRUE(rules.agent_is_required);
  EXPECT_EQ(rules.socket, "/s");
  EXPECT_FALSE(ParseRunRules("agent = \"optional\"\n", "f").agent_is_required);
  EXPECT_FALSE(ParseRunRules("", "f").agent_is_required);
}

TEST(RunRulesTest, RefusesUnknownRules) {
  for (const char* text :
       {"agent = required", "agent = \"yes\"", "agnet = \"required\"", "agent", "[run]",
        "socket = \"\"", "agent = \"required\" x", "agent = \"required", "socket = \"\\u0041\""}) {
    EXPECT_EQ(CodeOf([&] { ParseRunRules(text, "f"); }), kExitRefused) << text;
  }
}

TEST(RunRulesTest, NamesFileAndLineOfAMistake) {
  try {
    ParseRunRules("\nagent = 1\n", "/etc/spillway/run.toml");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_NE(failure.text().find("/etc/spillway/run.toml:2"), std::string::npos);
  }
}

TEST(RunRulesTest, MissingFileMeansNoRuleAndUnreadableFileIsRefused) {
  EXPECT_FALSE(ReadRunRules("/nowhere/run.toml").agent_is_required);
  EXPECT_EQ(CodeOf([] { ReadRunRules("/proc/self"); }), kExitRefused);
}

TEST(RunRulesTest, NoOptionEvadesTheRule) {
  const RunRules rules = {.agent_is_required = true, .socket = "/s"};

  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {}, {"--agent=/s"}, {"--require-agent", "--agent=/s"}, {"--budget", "1GiB"}}) {
    const RunOptions options = UnderRules(Options(words), rules, "f");
    EXPECT_TRUE(options.requires_agent);
    EXPECT_EQ(options.agent, "/s");
  }
  EXPECT_EQ(CodeOf([&] { UnderRules(Options({"--off"}), rules, "f"); }), kExitRefused);
  EXPECT_EQ(CodeOf([&] { UnderRules(Options({"--agent=/mine"}), rules, "f"); }), kExitRefused);
}

TEST(RunRulesTest, OptionsMayRequireTheAgentWithoutARule) {
  EXPECT_TRUE(UnderRules(Options({"--agent=required"}), {}, "f").requires_agent);
  EXPECT_TRUE(UnderRules(Options({"--require-agent", "--agent=/s"}), {}, "f").requires_agent);
  EXPECT_EQ(Options({"--require-agent", "--agent=/s"}).agent, "/s");
  EXPECT_FALSE(UnderRules(Options({"--agent"}), {}, "f").requires_agent);
  EXPECT_TRUE(UnderRules(Options({"--off"}), {}, "f").off);
  EXPECT_EQ(CodeOf([] { Options({"--require-agent", "--off"}); }), kExitUsage);
}

TEST(AgentRequirementTest, MatchesADeviceInEveryFormOfItsUuid) {
  const std::string status =
      R"({"devices": [{"device": 0, "uuid": "GPU-73696D2D68323030-0000-000000000000"}]})";

  EXPECT_TRUE(NamesDevice(status, "GPU-73696d2d-6832-3030-0000-000000000000"));
  EXPECT_FALSE(NamesDevice(status, "GPU-73696d2d-6832-3030-0000-000000000001"));
  EXPECT_FALSE(NamesDevice("", "GPU-7"));
}

}  // namespace
}  // namespace spillway::cli
