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

// How often a job whose bursts come at this interval is found idle in a minute.
int TimesIdle(Idleness& idleness, std::uint64_t interval_s, std::uint64_t begin_s) {
  int times = 0;
  bool was_active = true;
  for (std::uint64_t tenth = 0; tenth < 600; ++tenth) {
    const std::uint64_t now_ns = begin_s * kSecond + tenth * kSecond / 10;
    idleness.NoteActivity(begin_s + tenth / (10 * interval_s), false, now_ns);
    if (idleness.ShouldAsk(now_ns)) {
      idleness.Asks();
      idleness.Answered(false, now_ns);
    }
    times += was_active && !idleness.IsActive() ? 1 : 0;
    was_active = idleness.IsActive();
  }
  return times;
}

// Regression: a job with a burst every two seconds lent its memory, and asked for it back, each
// time.
TEST(IdlenessTest, JobWithFrequentBurstsStaysActive) {
  Idleness idleness;
  idleness.Begin(100 * kSecond);
  EXPECT_LE(TimesIdle(idleness, 2, 100), 2);
  EXPECT_LE(TimesIdle(idleness, 3, 200), 2);
  EXPECT_GE(TimesIdle(idleness, 10, 300), 5) << "a long idleness is worth it";

  // After a long idleness a second without calls is enough again.
  idleness.NoteActivity(9999, false, 400 * kSecond);
  EXPECT_TRUE(idleness.ShouldAsk(401 * kSecond));
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
