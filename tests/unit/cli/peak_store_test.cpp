#include "cli/peak_store.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/scratch_folder.h"

namespace spillway::cli {
namespace {

TEST(PeakStoreTest, KeyDependsOnProgramArgumentsProfileAndTheirBoundaries) {
  const std::string key = PeakKey("/bin/train", {"--epochs", "10"}, "simulated h200");
  EXPECT_EQ(key.size(), 32U);
  EXPECT_EQ(key, PeakKey("/bin/train", {"--epochs", "10"}, "simulated h200"));
  EXPECT_NE(key, PeakKey("/bin/train2", {"--epochs", "10"}, "simulated h200"));
  EXPECT_NE(key, PeakKey("/bin/train", {"--epochs", "11"}, "simulated h200"));
  EXPECT_NE(key, PeakKey("/bin/train", {"--epochs10"}, "simulated h200"));
  EXPECT_NE(key, PeakKey("/bin/train", {"--epochs", "10", ""}, "simulated h200"));
  EXPECT_NE(key, PeakKey("/bin/train", {"--epochs", "10"}, "H200"));
}

TEST(PeakStoreTest, KeysAreStableAcrossVersions) {
  // A changed hash would lose every peak that users have measured.
  EXPECT_EQ(PeakKey("/bin/train", {"a"}, "p"), "aa85b05e87fee5eba2f1ac9e5808c593");
}

TEST(PeakStoreTest, ReadsOnePositiveNumber) {
  test::ScratchFolder folder;
  EXPECT_EQ(ReadPeakBytes(folder.Write("good", "268435456\n")), 268435456U);
  EXPECT_EQ(ReadPeakBytes(folder.Write("bare", "17")), 17U);
}

TEST(PeakStoreTest, OtherTextIsNoPeak) {
  test::ScratchFolder folder;
  EXPECT_EQ(ReadPeakBytes(folder.path() + "/missing"), std::nullopt);
  for (const char* text :
       {"", "\n", "0\n", "-5\n", "12 MiB\n", "99999999999999999999999\n", "abc\n"}) {
    EXPECT_EQ(ReadPeakBytes(folder.Write("bad", text)), std::nullopt) << text;
  }
}

TEST(PeakStoreTest, LivesInTheStateFolder) {
  setenv("HOME", "/home/ada", 1);
  unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(PeakFolder(), "/home/ada/.local/state/spillway/peaks");
  setenv("XDG_STATE_HOME", "/var/state", 1);
  EXPECT_EQ(PeakFolder(), "/var/state/spillway/peaks");
  setenv("XDG_STATE_HOME", "not/absolute", 1);
  EXPECT_EQ(PeakFolder(), "/home/ada/.local/state/spillway/peaks");
  unsetenv("XDG_STATE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(PeakFolder(), std::nullopt);
}

}  // namespace
}  // namespace spillway::cli
