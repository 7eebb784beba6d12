#include "interposer/planning/idleness.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(IdlenessTest, WhoHasBegunIsActive) {
  Idleness idleness;
  idleness.Begin(100 * kSecond);
  idleness.Saw(0, false, 100 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
  EXPECT_FALSE(idleness.IsToAsk(100 * kSecond + kSecond / 2));
}

TEST(IdlenessTest, WhoDoesNothingIsIdleWhenItsDeviceHasNoWork) {
  Idleness idleness;
  idleness.Saw(7, false, 100 * kSecond);
  idleness.Saw(7, false, 101 * kSecond);
  EXPECT_TRUE(idleness.IsActive()) << "nobody has asked";

  ASSERT_TRUE(idleness.IsToAsk(101 * kSecond));
  idleness.Asks();
  EXPECT_FALSE(idleness.IsToAsk(101 * kSecond));
  idleness.Answered(false, 101 * kSecond);

  EXPECT_FALSE(idleness.IsActive());
  idleness.Saw(7, false, 102 * kSecond);
  EXPECT_FALSE(idleness.IsActive());
  idleness.Saw(8, false, 103 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
}

// A training step whose kernels take longer than a second, or whose neighbours do.
TEST(IdlenessTest, WhoseDeviceHasWorkIsAskedAgainLater) {
  Idleness idleness;
  idleness.Saw(7, false, 100 * kSecond);
  for (std::uint64_t second = 101; second < 120; ++second) {
    idleness.Saw(7, false, second * kSecond);
    ASSERT_TRUE(idleness.IsToAsk(second * kSecond));
    idleness.Asks();
    idleness.Answered(true, second * kSecond);
    ASSERT_TRUE(idleness.IsActive());
    ASSERT_FALSE(idleness.IsToAsk(second * kSecond + kSecond / 2));
  }
}

TEST(IdlenessTest, AnAnswerThatComesWhenItWokeSaysNothing) {
  Idleness idleness;
  idleness.Saw(7, false, 100 * kSecond);
  idleness.Asks();
  idleness.Saw(7, true, 101 * kSecond);
  idleness.Answered(false, 101 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
}

}  // namespace
}  // namespace spillway::interposer
