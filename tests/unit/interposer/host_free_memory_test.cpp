#include "interposer/driver/host_free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace spillway::driver {
namespace {

namespace fs = std::filesystem;

// A tree of control groups as files.
class HostHeadroomTest : public testing::Test {
 protected:
  HostHeadroomTest()
      : root_(fs::path(testing::TempDir()) /
              ("host_free_memory_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~HostHeadroomTest() override { fs::remove_all(root_); }

  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void Group(const fs::path& path, const std::string& limit, const std::string& used) {
    Write(path / "memory.max", limit + "\n");
    Write(path / "memory.current", used + "\n");
  }
  std::size_t BytesIn(const std::string& groups) {
    Write("groups", groups);
    return GroupsHostBytes((root_ / "groups").c_str(), root_.c_str());
  }

  const fs::path root_;
};

TEST_F(HostHeadroomTest, GroupHasItsLimitMinusItsUse) {
  Group("slurm/job_4", "1000", "300");

  EXPECT_EQ(BytesIn("0::/slurm/job_4\n"), 700u);
}

TEST_F(HostHeadroomTest, TightestAncestorGroupCounts) {
  Group("slurm/job_4/step_0", "max", "300");
  Group("slurm/job_4", "1000", "600");
  Group("slurm", "9000", "8000");

  EXPECT_EQ(BytesIn("0::/slurm/job_4/step_0\n"), 400u);
}

TEST_F(HostHeadroomTest, CacheCountsAsFree) {
  Group("pod", "1000", "900");
  Write("pod/memory.stat", "anon 100\ninactive_file 500\nactive_file 300\n");

  EXPECT_EQ(BytesIn("0::/pod\n"), 600u);
}

TEST_F(HostHeadroomTest, ContainersOwnGroupIsTheRoot) {
  Group("", "1000", "300");

  EXPECT_EQ(BytesIn("0::/\n"), 700u);
}

TEST_F(HostHeadroomTest, CgroupVersionOneHasOtherFileNames) {
  Write("memory/slurm/job_4/memory.limit_in_bytes", "1000\n");
  Write("memory/slurm/job_4/memory.usage_in_bytes", "500\n");
  Write("memory/slurm/job_4/memory.stat", "inactive_file 7\ntotal_inactive_file 200\n");
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("memory/memory.usage_in_bytes", "5\n");

  EXPECT_EQ(BytesIn("5:devices:/a\n4:memory:/slurm/job_4\n0::/\n"), 700u);
}

TEST_F(HostHeadroomTest, MoreUsedThanTheLimitLeavesNothing) {
  Group("pod", "1000", "1200");

  EXPECT_EQ(BytesIn("0::/pod\n"), 0u);
}

TEST_F(HostHeadroomTest, UnreadableLimitIsNoLimit) {
  EXPECT_EQ(BytesIn("0::/gone\n"), SIZE_MAX);
  EXPECT_EQ(BytesIn("nonsense\n:\n::\n0::\n"), SIZE_MAX);
  EXPECT_EQ(BytesIn("0::/" + std::string(3000, 'x') + "\n"), SIZE_MAX);
  EXPECT_EQ(GroupsHostBytes("/nonexistent", root_.c_str()), SIZE_MAX);
}

TEST(FreeHostBytesTest, ThisHostHasSome) {
  EXPECT_GT(FreeHostBytes(), 0u);
  EXPECT_LT(FreeHostBytes(), SIZE_MAX);
}

}  // namespace
}  // namespace spillway::driver
