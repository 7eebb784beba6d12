#include "agent/pool/spill_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace spillway::agent {
namespace {

using InMemory = SpillFolder::InMemory;

class SpillFolderTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(path_.data()), nullptr); }
  void TearDown() override { rmdir(path_.c_str()); }

  int NameCount() const {
    int count = 0;
    DIR* const folder = opendir(path_.c_str());
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count - 2;  // itself and its parent
  }

  std::string path_ = testing::TempDir() + "/spill-XXXXXX";
};

TEST_F(SpillFolderTest, FileIsPrivateHasNoNameAndItsSpaceIsReserved) {
  const auto folder = SpillFolder::Open(path_, InMemory::kAllowed);
  ASSERT_TRUE(folder) << folder.text();

  const auto file = folder->NewFile(8 << 20);

  ASSERT_TRUE(file) << file.text();
  struct stat facts {};
  ASSERT_EQ(fstat(file->get(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_EQ(facts.st_nlink, 0u);
  EXPECT_EQ(facts.st_size, 8 << 20);
  EXPECT_GE(facts.st_blocks * 512, 8 << 20);
  EXPECT_EQ(NameCount(), 0);
  const std::string self = "/proc/self/fd/" + std::to_string(file->get());
  EXPECT_NE(linkat(AT_FDCWD, self.c_str(), AT_FDCWD, (path_ + "/name").c_str(), AT_SYMLINK_FOLLOW),
            0)
      << "it can get no name";
}

TEST_F(SpillFolderTest, AFullDiskIsKnownAtOnce) {
  const auto folder = SpillFolder::Open(path_, InMemory::kAllowed);
  ASSERT_TRUE(folder);
  struct statvfs disk {};
  ASSERT_EQ(statvfs(path_.c_str(), &disk), 0);

  const auto file =
      folder->NewFile(static_cast<int64_t>(disk.f_blocks * disk.f_frsize) + (int64_t{1} << 30));

  EXPECT_FALSE(file);
  EXPECT_NE(file.text().find("cannot reserve space in "), std::string::npos) << file.text();
}

TEST_F(SpillFolderTest, AFolderWhereOthersMayWriteIsRefused) {
  for (const mode_t mode : {0777, 01777, 0770}) {
    chmod(path_.c_str(), mode);
    const auto folder = SpillFolder::Open(path_, InMemory::kAllowed);
    EXPECT_FALSE(folder);
    EXPECT_NE(folder.text().find("others may write there"), std::string::npos) << folder.text();
  }
}

TEST_F(SpillFolderTest, AnotherUsersFolderIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(chown(path_.c_str(), 12345, 0), 0);
  EXPECT_FALSE(SpillFolder::Open(path_, InMemory::kAllowed));
}

TEST_F(SpillFolderTest, AFolderInMemoryIsRefusedUnlessAllowed) {
  std::string path = "/dev/shm/spill-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) GTEST_SKIP() << "no /dev/shm";
  const auto refused = SpillFolder::Open(path, InMemory::kRefused);
  const auto allowed = SpillFolder::Open(path, InMemory::kAllowed);
  rmdir(path.c_str());
  EXPECT_FALSE(refused);
  EXPECT_NE(refused.text().find("it lies in memory"), std::string::npos) << refused.text();
  EXPECT_TRUE(allowed);
}

TEST_F(SpillFolderTest, AMissingFolderIsAnErrorWithItsName) {
  const auto folder = SpillFolder::Open(path_ + "/none", InMemory::kAllowed);
  EXPECT_FALSE(folder);
  EXPECT_NE(folder.text().find("/none: No such file or directory"), std::string::npos);
}

}  // namespace
}  // namespace spillway::agent
