#include "interposer/planning/idleness.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(IdlenessTest, JobThatHasBegunIsActive) {
  Idleness idleness;
  idleness.Begin(100 * kSecond);
  idleness.NoteActivity(0, false, 100 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
  EXPECT_FALSE(idleness.ShouldAsk(100 * kSecond + kSecond / 2));
}

TEST(IdlenessTest, JobWithoutCallsIsIdleWhenItsDeviceHasNoWork) {
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

// A training step whose kernels, or whose neighbours, take longer than a second.
TEST(IdlenessTest, BusyDeviceIsQueriedAgainLater) {
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

TEST(IdlenessTest, AnswerThatComesAfterTheJobWokeIsIgnored) {
  Idleness idleness;
  idleness.NoteActivity(7, false, 100 * kSecond);
  idleness.Asks();
  idleness.NoteActivity(7, true, 101 * kSecond);
  idleness.Answered(false, 101 * kSecond);
  EXPECT_TRUE(idleness.IsActive());
}

}  // namespace
}  // namespace spillway::interposer
