#include "agent/node/table/users.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/fake_services.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

TEST(UsersTest, CountsSessionsOfEachUser) {
  FakeServices services;
  Users users(&services);

  users.AddSession(1000);
  users.AddSession(1000);
  users.AddSession(1001);
  users.RemoveSession(1000, 0);

  EXPECT_EQ(users.SessionsOf(1000), 1);
  EXPECT_EQ(users.SessionsOf(1001), 1);
  EXPECT_EQ(users.SessionsOf(1002), 0);
}

TEST(UsersTest, LimitsConnectionsAndQuestionsSeparately) {
  FakeServices services;
  Users users(&services);

  EXPECT_TRUE(users.TakeConnection(1000, kSecond, 1));
  EXPECT_FALSE(users.TakeConnection(1000, kSecond, 1));
  EXPECT_TRUE(users.TakeQuestion(1000, kSecond, 1)) << "questions have their own rate";
  EXPECT_TRUE(users.TakeConnection(1001, kSecond, 1)) << "other users have their own rate";
  EXPECT_TRUE(users.TakeConnection(1000, 2 * kSecond, 1));
}

// Otherwise a user could reconnect faster than allowed by leaving no session behind.
TEST(UsersTest, RemembersTheRateOfAUserThatHasJustLeft) {
  FakeServices services;
  Users users(&services);
  ASSERT_TRUE(users.TakeConnection(1000, kSecond, 1));
  users.AddSession(1000);

  users.RemoveSession(1000, kSecond);

  EXPECT_FALSE(users.TakeConnection(1000, kSecond, 1));
}

TEST(UsersTest, CountsLogLinesThatItLeavesOut) {
  FakeServices services;
  Users users(&services);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(users.TakeLogLine(1000, kSecond));

  EXPECT_FALSE(users.TakeLogLine(1000, kSecond));
  EXPECT_FALSE(users.TakeLogLine(1000, kSecond));
  EXPECT_TRUE(services.warnings.empty());
  EXPECT_TRUE(users.TakeLogLine(1000, 2 * kSecond));

  ASSERT_EQ(services.warnings.size(), 1U);
  EXPECT_EQ(services.warnings[0], "user 1000 caused 2 lines too many, which are left out");
}

}  // namespace
}  // namespace spillway::agent
