#include "cli/environment_changes.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spillway::cli {
namespace {

TEST(EnvironmentChangesTest, NothingHappensBeforeApply) {
  unsetenv("SPILLWAY_TEST_A");
  EnvironmentChanges changes;
  changes.Set("SPILLWAY_TEST_A", "1");
  EXPECT_EQ(std::getenv("SPILLWAY_TEST_A"), nullptr);
  changes.Apply();
  EXPECT_STREQ(std::getenv("SPILLWAY_TEST_A"), "1");
}

TEST(EnvironmentChangesTest, DefaultsYieldToTheUser) {
  setenv("SPILLWAY_TEST_B", "mine", 1);
  unsetenv("SPILLWAY_TEST_C");
  EnvironmentChanges changes;
  changes.SetDefault("SPILLWAY_TEST_B", "ours");
  changes.SetDefault("SPILLWAY_TEST_C", "ours");
  changes.Apply();
  EXPECT_STREQ(std::getenv("SPILLWAY_TEST_B"), "mine");
  EXPECT_STREQ(std::getenv("SPILLWAY_TEST_C"), "ours");
}

TEST(EnvironmentChangesTest, PrependKeepsTheOldValue) {
  setenv("SPILLWAY_TEST_D", "/b:/c", 1);
  unsetenv("SPILLWAY_TEST_E");
  EnvironmentChanges changes;
  changes.Prepend("SPILLWAY_TEST_D", "/a", ':');
  changes.Prepend("SPILLWAY_TEST_E", "/a", ':');
  changes.Prepend("SPILLWAY_TEST_D", "/0", ':');
  changes.Apply();
  EXPECT_STREQ(std::getenv("SPILLWAY_TEST_D"), "/0:/a:/b:/c");
  EXPECT_STREQ(std::getenv("SPILLWAY_TEST_E"), "/a");
}

TEST(EnvironmentChangesTest, UnsetRemovesTheVariable) {
  setenv("SPILLWAY_TEST_F", "x", 1);
  EnvironmentChanges changes;
  changes.Unset("SPILLWAY_TEST_F");
  changes.Apply();
  EXPECT_EQ(std::getenv("SPILLWAY_TEST_F"), nullptr);
}

}  // namespace
}  // namespace spillway::cli
