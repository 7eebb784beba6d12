#include "base/path.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spillway::base {
namespace {

namespace fs = std::filesystem;

class PathTest : public testing::Test {
 protected:
  PathTest() {
    char name[] = "/tmp/spillway-path.XXXXXX";
    folder_ = mkdtemp(name);
    fs::create_directories(folder_ + "/jobs");
    fs::create_symlink(folder_ + "/jobs", folder_ + "/link");
    fs::create_symlink(folder_ + "/elsewhere", folder_ + "/jobs/out");
  }
  ~PathTest() override { fs::remove_all(folder_); }

  std::string folder_;
};

TEST_F(PathTest, FollowsLinks) {
  EXPECT_TRUE(IsSamePath(folder_ + "/link/agent.sock", folder_ + "//jobs/x/../agent.sock"));
  EXPECT_FALSE(IsSamePath(folder_ + "/link/agent.sock", folder_ + "/agent.sock"));
}

TEST_F(PathTest, KnowsWhatAFolderHas) {
  const std::string jobs = folder_ + "/jobs";
  for (const char* const inside : {"/jobs", "/jobs/", "/jobs/a", "//jobs//a/b", "/x/../jobs/a",
                                   "/link/a", "/link", "/jobs/out"})
    EXPECT_TRUE(IsInFolder(folder_ + inside, jobs)) << inside;
  for (const char* const outside : {"/a", "/jobs-of-others/a", "/jobs/../a", ""})
    EXPECT_FALSE(IsInFolder(folder_ + outside, jobs)) << outside;
  EXPECT_TRUE(IsInFolder(folder_ + "/a", "/"));
}

}  // namespace
}  // namespace spillway::base
