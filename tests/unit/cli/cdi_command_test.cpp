#include "cli/cdi_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/failure.h"
#include "cli/launch_checks.h"

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

TEST(CdiCommandTest, AnAllocationIsADeviceOfItsOwn) {
  EXPECT_THAT(CdiSpecification({.library = "/l/libspillway.so",
                                .job_socket = "/run/spillway/allocations/a/agent.sock"},
                               "a"),
              testing::AllOf(HasSubstr("\"name\": \"a\""),
                             HasSubstr("\"hostPath\": \"/run/spillway/allocations/a\"")));
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
        {"cdi", "--close"},
        {"cdi", "--allocation", "shared"},
        {"cdi", "--allocation", std::string(64, 'a')},
        {"cdi", "--allocation", "a", "--no-agent"},
        {"cdi", "--allocation", "a", "--job-socket", "/run/spillway/jobs/agent.sock"},
        {"cdi", "all"}}) {
    EXPECT_THROW(RunCdi(arguments), Failure) << arguments.back();
  }
}

// Written in another way, a socket may still share its folder with the operators' socket.
TEST(CdiCommandTest, AFolderWithMoreThanTheJobsSocketIsRefused) {
  for (const char* const socket :
       {"/run//spillway/agent.sock", "/run/./spillway/jobs.sock", "/var/run/spillway/agent.sock",
        "/run/spillway/jobs/../jobs.sock", "/run/spillway/jobs/", "/run/spillway/jobs/..",
        "/run/agent.sock", "/var/run/agent.sock", "/tmp/agent.sock", "/tmp/./agent.sock",
        "/agent.sock", "//agent.sock", "/", ""}) {
    try {
      RunCdi({"cdi", "--job-socket", socket});
      ADD_FAILURE() << socket;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit_code(), kExitUsage) << socket;
    }
  }
}

class CdiFileTest : public testing::Test {
 protected:
  CdiFileTest() {
    std::filesystem::create_directories(folder_ + "/jobs");
    std::filesystem::create_directory_symlink(folder_, folder_ + "/link");
  }
  ~CdiFileTest() override {
    unsetenv("SPILLWAY_SOCKET");
    std::filesystem::remove_all(folder_);
  }
  int Write(const std::string& socket) {
    return RunCdi({"cdi", "--job-socket", socket, "-o", file_});
  }

  const std::string folder_ =
      std::filesystem::canonical(testing::TempDir()).string() + "/cdi" + std::to_string(getpid());
  const std::string file_ = folder_ + "/spillway.json";
};

TEST_F(CdiFileTest, TheSpecificationNamesTheFolderWithoutLinksAndAllMayReadIt) {
  const mode_t mask = umask(022);
  ASSERT_EQ(Write(folder_ + "/link//./jobs/agent.sock"), 0);
  umask(mask);

  EXPECT_THAT(base::ReadFile(file_).value_or(""),
              HasSubstr("\"hostPath\": \"" + folder_ + "/jobs\""));
  struct stat facts {};
  ASSERT_EQ(stat(file_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0644U);
}

TEST_F(CdiFileTest, TheFolderOfTheOperatorsSocketInUseIsRefused) {
  setenv("SPILLWAY_SOCKET", (folder_ + "/jobs/agent.sock").c_str(), 1);

  EXPECT_THROW(Write(folder_ + "/link/jobs/jobs.sock"), Failure);
  EXPECT_THROW(Write(folder_ + "/jobs.sock"), Failure);
}

}  // namespace
}  // namespace spillway::cli
