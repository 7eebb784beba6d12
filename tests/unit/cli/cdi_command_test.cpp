#include "cli/cdi_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/failure.h"

namespace spillway::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CdiCommandTest, AJobOfTheAgentsGetsTheLibraryAndTheSocketsFolder) {
  EXPECT_EQ(CdiSpecification({.library = "/opt/lib/libspillway.so",
                              .job_socket = "/run/spillway/jobs/agent.sock",
                              .sets_frameworks = false}),
            R"({"cdiVersion": "0.5.0",
 "kind": "spillway.dev/job",
 "devices": [{"name": "shared", "containerEdits": {
   "env": ["LD_PRELOAD=/usr/lib/spillway/libspillway.so", "SPILLWAY_AGENT=/run/spillway/agent.sock", "SPILLWAY_AGENT_REQUIRED=1"],
   "mounts": [
     {"hostPath": "/opt/lib/libspillway.so", "containerPath": "/usr/lib/spillway/libspillway.so", "options": ["ro", "nosuid", "nodev", "bind"]},
     {"hostPath": "/run/spillway/jobs", "containerPath": "/run/spillway", "options": ["ro", "nosuid", "nodev", "noexec", "bind"]}]}}]}
)");
}

TEST(CdiCommandTest, WithoutAnAgentTheBudgetIsInTheEnvironment) {
  const std::string text =
      CdiSpecification({.library = "/l/libspillway.so", .budget_bytes = 8ULL << 30});

  EXPECT_THAT(text, HasSubstr("SPILLWAY_BUDGET=8589934592"));
  EXPECT_THAT(text, HasSubstr("PYTORCH_ALLOC_CONF=backend:cudaMallocAsync"));
  EXPECT_THAT(text, Not(HasSubstr("SPILLWAY_AGENT")));
  EXPECT_THAT(text, Not(HasSubstr("/run/spillway")));
}

TEST(CdiCommandTest, WhatCannotWorkIsRefused) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"cdi", "--budget", "50%"},
        {"cdi", "--budget", "1MiB"},
        {"cdi", "--job-socket", "agent.sock"},
        {"cdi", "--job-socket", "@agent"},
        {"cdi", "--job-socket", "/run/spillway/agent.sock"},
        {"cdi", "all"}}) {
    EXPECT_THROW(RunCdi(arguments), Failure) << arguments.back();
  }
}

}  // namespace
}  // namespace spillway::cli
