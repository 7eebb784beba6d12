#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

Finding FindingOn(const Findings& findings, const std::string& subject) {
  for (const Finding& finding : findings) {
    if (finding.subject == subject) return finding;
  }
  ADD_FAILURE() << "no finding on " << subject;
  return {};
}

Findings ExamineTree(const test::ScratchFolder& root) {
  Findings findings;
  ExamineKernel(root.path(), findings);
  return findings;
}

TEST(DoctorTest, HealthyMachineIsOkThroughout) {
  test::ScratchFolder root;
  root.Write("proc/meminfo", "MemTotal:       65536000 kB\nMemAvailable:   33554432 kB\n");
  root.Write("proc/sys/vm/max_map_count", "65530\n");
  root.Write("proc/sys/vm/overcommit_memory", "0\n");
  root.Write("sys/devices/system/node/online", "0-1\n");
  const Findings findings = ExamineTree(root);
  EXPECT_EQ(CountLevel(findings, Level::kOk), static_cast<int>(findings.size()));
  EXPECT_EQ(FindingOn(findings, "host memory").fact, "32.0 GiB available");
  EXPECT_EQ(FindingOn(findings, "numa").fact, "nodes 0-1");
}

TEST(DoctorTest, TightMachineGetsWarningsWithRemedies) {
  test::ScratchFolder root;
  root.Write("proc/meminfo", "MemAvailable:   1048576 kB\n");
  root.Write("proc/sys/vm/max_map_count", "1000\n");
  root.Write("proc/sys/vm/overcommit_memory", "2\n");
  root.Write("sys/fs/selinux/enforce", "1");
  const Findings findings = ExamineTree(root);
  for (const char* subject : {"host memory", "vm.max_map_count", "vm.overcommit", "selinux"}) {
    EXPECT_EQ(FindingOn(findings, subject).level, Level::kWarning) << subject;
    EXPECT_NE(FindingOn(findings, subject).remedy, "") << subject;
  }
}

TEST(DoctorTest, ControlGroupLimitCountsWhenItIsLower) {
  test::ScratchFolder root;
  root.Write("proc/meminfo", "MemAvailable:   33554432 kB\n");
  root.Write("sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(FindingOn(ExamineTree(root), "host memory").level, Level::kWarning);
  root.Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(FindingOn(ExamineTree(root), "host memory").level, Level::kOk);
}

TEST(DoctorTest, MissingLibraryIsAProblem) {
  Findings findings;
  ExamineInstallation({.executable = "/x/bin/spillway",
                       .preload_library = "/x/lib/libspillway.so",
                       .simulator_folder = ""},
                      findings);
  EXPECT_EQ(FindingOn(findings, "preload").level, Level::kProblem);
}

TEST(DoctorTest, LibraryThatTheLoaderRefusesIsAProblem) {
  // Given a file that is no shared object; the loader reports it and continues
  test::ScratchFolder folder;
  Findings findings;
  ExamineInstallation({.executable = "/x/bin/spillway",
                       .preload_library = folder.Write("libspillway.so", "not ELF"),
                       .simulator_folder = ""},
                      findings);
  EXPECT_EQ(FindingOn(findings, "preload").level, Level::kProblem);
  EXPECT_THAT(FindingOn(findings, "preload").fact, HasSubstr("preload"));
}

TEST(FindingsTest, JsonIsEscaped) {
  const std::string json = FindingsAsJson({{Level::kWarning, "a", "say \"\\\"\n", "r"}});
  EXPECT_THAT(json, HasSubstr(R"("fact":"say \"\\\"\u000a")"));
  EXPECT_THAT(json, HasSubstr(R"("problems":0,"warnings":1)"));
}

}  // namespace
}  // namespace spillway::cli
