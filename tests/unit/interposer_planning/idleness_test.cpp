#include "interposer/planning/idleness.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(IdlenessTest, WhoHasBegunIsActive) {
  Idleness idleness;
  idleness.Begin(100 * kSecond);
  idleness.NoteActivity(0, false, 100 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
  EXPECT_FALSE(idleness.ShouldAsk(100 * kSecond + kSecond / 2));
}

TEST(IdlenessTest, WhoDoesNothingIsIdleWhenItsDeviceHasNoWork) {
  Idleness idleness;
  idleness.NoteActivity(7, false, 100 * kSecond);
  idleness.NoteActivity(7, false, 101 * kSecond);
  EXPECT_TRUE(idleness.IsActive()) << "nobody has asked";

  ASSERT_TRUE(idleness.ShouldAsk(101 * kSecond));
  idleness.Asks();
  EXPECT_FALSE(idleness.ShouldAsk(101 * kSecond));
  idleness.Answered(false, 101 * kSecond);

  EXPECT_FALSE(idleness.IsActive());
  idleness.NoteActivity(7, false, 102 * kSecond);
  EXPECT_FALSE(idleness.IsActive());
  idleness.NoteActivity(8, false, 103 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
}

// A training step whose kernels take longer than a second, or whose neighbours do.
TEST(IdlenessTest, WhoseDeviceHasWorkIsAskedAgainLater) {
  Idleness idleness;
  idleness.NoteActivity(7, false, 100 * kSecond);
  for (std::uint64_t second = 101; second < 120; ++second) {
    idleness.NoteActivity(7, false, second * kSecond);
    ASSERT_TRUE(idleness.ShouldAsk(second * kSecond));
    idleness.Asks();
    idleness.Answered(true, second * kSecond);
    ASSERT_TRUE(idleness.IsActive());
    ASSERT_FALSE(idleness.ShouldAsk(second * kSecond + kSecond / 2));
  }
}

TEST(IdlenessTest, AnAnswerThatComesWhenItWokeSaysNothing) {
  Idleness idleness;
  idleness.NoteActivity(7, false, 100 * kSecond);
  idleness.Asks();
  idleness.NoteActivity(7, true, 101 * kSecond);
  idleness.Answered(false, 101 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
}

}  // namespace
}  // namespace spillway::interposer
