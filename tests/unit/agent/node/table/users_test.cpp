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

// Regression: root of one container, which connected all the time, kept operators and the driver of
// Kubernetes out.
TEST(UsersTest, UsersInContainersCountApart) {
  FakeServices services;
  Users users(&services);
  const User inside(0, Entrance::kJobsOnly);
  users.AddSession(inside);
  EXPECT_TRUE(users.TakeConnection(inside, kSecond, 1));
  EXPECT_TRUE(users.TakeQuestion(inside, kSecond, 1));
  for (int i = 0; i < 6; ++i) users.TakeLogLine(inside, kSecond);

  EXPECT_EQ(users.SessionsOf(0), 0);
  EXPECT_TRUE(users.TakeConnection(0, kSecond, 1));
  EXPECT_TRUE(users.TakeQuestion(0, kSecond, 1));
  EXPECT_TRUE(users.TakeLogLine(0, kSecond));

  EXPECT_TRUE(users.TakeLogLine(inside, 2 * kSecond));
  EXPECT_EQ(services.warnings.at(0),
            "user 0 in containers caused 1 lines too many, which are left out");
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
